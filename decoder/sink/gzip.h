/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Gzip
 *
 * Compresses what a sink writes, piece by piece, as a file of gzip (RFC 1952).
 */

#include <stddef.h>

#include "base/base.h"
#include "ptd/sink.h"

struct gzip;

/* Begin a file. @output is borrowed. Return: 0 or -ENOMEM. */
_must_check_ int gzip_new(struct ptd_output *output, struct gzip **ret_gzip);

/* Add bytes. Return: 0 or negative errno. */
_must_check_ int gzip_write(struct gzip *gzip, const void *bytes, size_t size);

/* Nothing more comes: write the end of the file. Return: 0 or negative errno. */
_must_check_ int gzip_finish(struct gzip *gzip);

/* @gzip may be NULL. Return: NULL. */
struct gzip *gzip_free(struct gzip *gzip);

DEFINE_CLEANUP(struct gzip *, gzip_free);
