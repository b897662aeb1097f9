/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Verify
 *
 * Compares two decoded streams of one input, which two engines made, and shows where they first
 * differ: in an instruction, its thread, CPU or time, or in a mark. Left out are marks of kinds
 * that the reference never reports: CFE, EVD, PEBS, TRIG, MWAIT, PWRE, EXSTOP and PWRX. Where one
 * engine cuts runs and batches does not matter.
 */

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "ptd/record.h"

enum {
	VERIFY_EQUAL,
	VERIFY_DIFFERENT, /* and it was written where */
};

struct verify_stream {
	const char *name;
	/* Get the next batch, as ptd_decoder_next(): 0, PTD_END or negative errno. */
	int (*next)(void *userdata, const struct ptd_batch **ret_batch);
	void *userdata;
};

/*
 * Compare both streams up to the first difference. It is written to @f, with what both have before
 * it and what each has behind it.
 *
 * Return: VERIFY_EQUAL or VERIFY_DIFFERENT, and @ret_n_insns, how many instructions are equal; or
 *         the negative errno of a stream.
 */
_must_check_ int verify_streams(const struct verify_stream streams[static 2], FILE *f,
				uint64_t *ret_n_insns);
