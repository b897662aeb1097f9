/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pipeline
 *
 * What a program of ours can do with a decoder (ptd/decode.h) that others cannot.
 */

#include "base/base.h"
#include "ptd/decode.h"

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

/*
 * Make a decoder of what @feed makes. options->input is what messages call that. When the source
 * has no batch for now, ptd_decoder_next() returns PTD_END, and may be called again later.
 *
 * Return: as ptd_decoder_new().
 */
_must_check_ int decoder_new_fed(const struct ptd_options *options, const struct decoder_feed *feed,
				 struct ptd_decoder **ret_decoder, char **reterr_message);
