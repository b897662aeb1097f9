/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Creator
 *
 * The helper that creates, opens and renames files in one directory, and makes directories for them
 * there. The decoder needs it because the decoder is confined and may open no file for writing. The
 * creator receives only names in that directory from the decoder, and is confined itself. The
 * messages are in decoder/util/outdir.h.
 */

#include "base/base.h"
#include "decoder/cmd/sandbox.h"

/* Start the creator for the directory @dir_fd, which stays the caller's. Return: 0, or negative
 * errno. */
_must_check_ int creator_start(int dir_fd, struct helper *ret_creator);
