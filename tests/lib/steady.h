/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pointers that stay valid
 *
 * Holds the pointers of batches to symbols, blocks and objects, and checks that these do not move
 * or change until the decoder is freed, as ptd/record.h promises.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/vec.h"

struct steady_symbol {
	const struct ptd_symbol *symbol;
	struct ptd_symbol was;
	uint64_t name; /* hash of it */
};

struct steady_block {
	const struct ptd_block *block; /* NULL: not seen yet */
	struct ptd_block was;
	uint64_t code; /* hash of its bytes and instructions */
	uint64_t name; /* of its object's name */
};

struct steady {
	VEC(struct steady_symbol) symbols; /* by id */
	VEC(struct steady_block) blocks;   /* by id */
};

void steady_deinit(struct steady *steady);

/* Note the new pointers of @batch. Return: 0; -EBADMSG if something has moved; -ENOMEM. */
_must_check_ int steady_batch(struct steady *steady, const struct ptd_batch *batch);

/*
 * Check all at the end of the stream, before the decoder is freed.
 *
 * Return: how many have moved or changed.
 */
size_t steady_n_changed(const struct steady *steady);
