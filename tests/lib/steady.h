/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Steady
 *
 * Holds pointers that batches gave out, to symbols, blocks and objects, and judges whether these
 * stay where and as they are until the decoder is freed, as ptd/record.h promises.
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
	const struct ptd_block *block; /* NULL: not met */
	struct ptd_block was;
	uint64_t code; /* hash of its bytes and instructions */
	uint64_t name; /* of its object's name */
};

struct steady {
	VEC(struct steady_symbol) symbols; /* by id */
	VEC(struct steady_block) blocks;   /* by id */
};

void steady_deinit(struct steady *steady);

/* Note what is new in @batch. Return: 0; -EBADMSG if something has another place; -ENOMEM. */
_must_check_ int steady_batch(struct steady *steady, const struct ptd_batch *batch);

/* The stream is over, but the decoder is there. Return: how many have moved or changed. */
size_t steady_n_changed(const struct steady *steady);
