/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Golden input
 *
 * Writes the files that a golden case describes: its code, and a bare stream or a perf.data file,
 * which may lie in a directory with the kernel's code.
 */

#include "base/base.h"
#include "ptd/decode.h"
#include "tests/lib/golden.h"

struct golden_input {
	struct ptd_options options; /* to decode it with; they point into this struct */
	char path[256];             /* of the bare stream, perf.data, snapshot or directory */
	const char *data;           /* the path of the stream or perf.data */
	char filter[256];           /* of a bare stream */
	char code_paths[GOLDEN_PIECES_MAX][256];
	struct ptd_raw_code code[GOLDEN_PIECES_MAX];
};

/*
 * Write the case's files into the directory @dir.
 *
 * Return: 0; or negative errno, after a message on stderr.
 */
_must_check_ int golden_input_write(const struct golden *golden, const char *dir,
				    struct golden_input *ret_input);
