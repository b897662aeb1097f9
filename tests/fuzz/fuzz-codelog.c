/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A foreign code log: all of its pieces must lie in it, and come as they are promised to. */

#include <stdlib.h>

#include "decoder/jit/codelog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codelog_pieces pieces;

	if (codelog_parse(data, size, size, &pieces) < 0)
		return 0;
	for (size_t i = 0; i < pieces.list.n; i++) {
		const struct codelog_piece *p = &pieces.list.items[i];

		check(p->start <= p->last);
		check(p->offset <= size &&
		      (p->offset == 0 || p->last - p->start < size - p->offset));
		check(p->offset > 0 || p->time > 0);
		check(i == 0 || p[-1].time <= p->time);
		check(i == 0 || p->time > 0 || p[-1].last < p->start);
	}
	vec_deinit(&pieces.list);
	return 0;
}
