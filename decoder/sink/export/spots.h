/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Spots
 *
 * How often each instruction of an object was executed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/tally.h"
#include "ptd/record.h"

/* An instruction that was executed. */
struct spot {
	uint64_t address; /* as linked */
	uint64_t n;
	bool is_call, is_entry; /* the first instruction of a symbol */
};

struct spots {
	struct spot *items;
	size_t n;
	size_t n_capacity;
};

/* Count the runs of @batch. Return: 0 or -ENOMEM. */
_must_check_ int spots_count(struct tally *tally, struct tally_index *index,
			     const struct ptd_batch *batch);

/*
 * List the spots of @object by address, from what was counted. @symbols are those of the stream, by
 * id. The caller frees @ret_spots with vec_deinit(), also if this fails.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int spots_list(const struct tally *tally, const struct ptd_object *object,
			    const struct ptd_symbol *const *symbols, struct spots *ret_spots);
