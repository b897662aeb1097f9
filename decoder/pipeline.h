/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pipeline
 *
 * What a program of ours can do with a decoder (ptd/decode.h) that others cannot.
 */

#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"

struct ahead_counts;
struct batchsource;
struct objects;
struct resolver;

/*
 * What makes the batches of a decoder that has no input of its own. @make makes their source, whose
 * objects and symbols are those of @objects and @resolver, which it may borrow.
 */
struct decoder_feed {
	int (*make)(void *userdata, struct objects *objects, struct resolver *resolver,
		    struct batchsource **ret_source);
	void *userdata;
};

/* What a program of ours can set besides the options. */
struct decoder_config {
	const struct decoder_feed *feed; /* borrowed; NULL: the input is what the options name */
	uint64_t cut_size; /* the distance of cuts, where threads can begin; 0: LANE_CUT_SIZE */
};

/*
 * Make a decoder as ptd_decoder_new() does. With a feed, options->input is what messages call the
 * input; when its source has no batch for now, ptd_decoder_next() returns PTD_END, and may be
 * called again later.
 *
 * Return: as ptd_decoder_new().
 */
_must_check_ int decoder_new(const struct ptd_options *options, const struct decoder_config *config,
			     struct ptd_decoder **ret_decoder, char **reterr_message);

/* Return: how many parts threads have decoded ahead so far. */
const struct ahead_counts *decoder_parts(const struct ptd_decoder *decoder);
