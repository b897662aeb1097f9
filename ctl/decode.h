/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decode
 *
 * What becomes of a new snapshot: ptdecode(1) is run on it, or it is copied, or neither. The
 * functions report errors on standard error and return an exit status of verb.h.
 */

#include <systemd/sd-bus.h>

#include "base/base.h"

/* What --then asks for. */
struct decode_wish {
	const char *what; /* a verb of ptdecode, with options; NULL: nothing is decoded */
	/* The file, or directory of a format that makes one; NULL: standard output. If nothing is
	 * decoded, the directory to which the snapshot is copied; NULL: it is not. */
	const char *output;
};

/* Check that there can be a result, before there is a snapshot: that ptdecode knows what is asked
 * for, and that the output can be written. */
_must_check_ int decode_check(const struct decode_wish *wish);

/* Decode the snapshot @id of the recorder, and remove it from there; or copy it. One that cannot be
 * decoded stays. A gap in the recording is no failure. */
_must_check_ int decode_taken(sd_bus *bus, const char *id, const struct decode_wish *wish);

/* Run ptdecode with the arguments @words, which NULL ends, on the directory @dir_fd. Return:
 * EXIT_OK if ptdecode ran, and @ret_status is its exit status; or EXIT_FAILED. */
_must_check_ int decode_run(int dir_fd, const char *const *words, int *ret_status);
