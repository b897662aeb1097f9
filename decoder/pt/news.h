/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * News
 *
 * What packets said last of things that each PSB+ repeats. Only what differs from that is reported.
 * {} at the start. Each function returns whether what it is told is news, and remembers it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ptd/record.h"

struct news {
	bool in_transaction;
	uint64_t cbr, cr3, non_root, vmcs;
};

/* @ret_what says what happened to the transaction. */
static inline bool news_take_tsx(struct news *news, bool begins, bool aborts,
				 enum ptd_tsx *ret_what)
{
	const bool is_new = aborts || begins != news->in_transaction;

	news->in_transaction = begins;
	*ret_what = aborts ? PTD_TSX_ABORT : begins ? PTD_TSX_BEGIN : PTD_TSX_COMMIT;
	return is_new;
}

static inline bool news_is_paging(const struct news *news, uint64_t cr3, uint64_t non_root)
{
	return cr3 != news->cr3 || non_root != news->non_root;
}

static inline bool news_take_paging(struct news *news, uint64_t cr3, uint64_t non_root)
{
	const bool is_new = news_is_paging(news, cr3, non_root);

	news->cr3 = cr3;
	news->non_root = non_root;
	return is_new;
}

/* @known is news->cbr or news->vmcs. */
static inline bool news_take(uint64_t *known, uint64_t value)
{
	const bool is_new = value != *known;

	*known = value;
	return is_new;
}
