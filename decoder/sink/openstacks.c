/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/openstacks.h"

#include <errno.h>

void open_stacks_deinit(struct open_stacks *stacks)
{
	vec_deinit_each(&stacks->items, stack, vec_deinit(&stack->frames));
}

struct open_stack *open_stacks_make(struct open_stacks *stacks, uint32_t id)
{
	return vec_at(&stacks->items, id, {});
}

int open_stacks_move(struct open_stacks *stacks, const struct ptd_call *call)
{
	const uint32_t last = call->stack > call->moved_to ? call->stack : call->moved_to;
	struct open_stack *from, *to;
	size_t n = call->n_moved;

	if (n == 0 || call->stack == call->moved_to)
		return 0;
	if (!open_stacks_get(stacks, last))
		return -ENOMEM;
	from = &stacks->items.items[call->stack];
	to = &stacks->items.items[call->moved_to];
	if (n > from->frames.n)
		n = from->frames.n;
	if (vec_reserve(&to->frames, n) < 0)
		return -ENOMEM;
	from->frames.n -= n;
	for (size_t i = 0; i < n; i++) {
		struct open_frame *frame = &to->frames.items[to->frames.n];

		*frame = from->frames.items[from->frames.n + i];
		if (to->frames.n > 0)
			frame->depth = frame[-1].depth + 1;
		to->frames.n++;
	}
	if (from->frames.n == 0)
		vec_deinit(&from->frames);
	return 0;
}
