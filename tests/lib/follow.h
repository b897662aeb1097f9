/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Follow
 *
 * Judges a decoded stream. Each instruction must lie in bytes that its process had mapped at that
 * time, must consist of these bytes, and must follow from its predecessor by them, unless a mark or
 * a new slice stands between the two. The judge reads records and files by itself (mapped.h) and
 * calls Zydis itself; of the decoder it sees only the stream.
 */

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "ptd/decode.h"

#define FOLLOW_FAULTS_MAX 20 /* of which the text is printed; the others are only counted */

struct follow;

/*
 * Begin to judge the stream that is decoded with @options from a snapshot directory, a perf.data
 * file or a bare stream. Each fault is written as a line to @faults.
 *
 * Return: 0; or negative errno if the records cannot be read.
 */
_must_check_ int follow_new(const struct ptd_options *options, const struct ptd_info *info,
			    FILE *faults, struct follow **ret_follow);
struct follow *follow_free(struct follow *follow);

/* Judge the next batch of the stream. Return: 0 or -ENOMEM. */
_must_check_ int follow_batch(struct follow *follow, const struct ptd_batch *batch);

/* Return: the number of instructions judged so far, or of faults found. */
uint64_t follow_n_insns(const struct follow *follow);
uint64_t follow_n_faults(const struct follow *follow);

DEFINE_CLEANUP(struct follow *, follow_free);
