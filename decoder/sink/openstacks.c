/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/openstacks.h"

#include <errno.h>
#include <string.h>

void open_stacks_deinit(struct open_stacks *stacks)
{
	for (size_t i = 0; i < stacks->items.n; i++)
		vec_deinit(&stacks->items.items[i].frames);
	vec_deinit(&stacks->items);
}

struct open_stack *open_stacks_get(struct open_stacks *stacks, uint32_t id)
{
	while (stacks->items.n <= id)
		if (vec_push(&stacks->items, {}) < 0)
			return NULL;
	return &stacks->items.items[id];
}

int open_stack_push(struct open_stack *stack, const struct ptd_call *call)
{
	if (stack->frames.n == 0)
		stack->depth_min = call->depth < 0 ? call->depth : 0;
	else if (call->depth < stack->depth_min)
		stack->depth_min = call->depth;
	return vec_push(&stack->frames, { .function = call->function,
					  .t = call->t,
					  .depth = call->depth,
					  .how = call->how,
					  .ambiguous = call->ambiguous });
}

int open_stacks_move(struct open_stacks *stacks, uint32_t from_id, uint32_t to_id, uint32_t n)
{
	const uint32_t last_id = from_id > to_id ? from_id : to_id;
	struct open_stack *from, *to;
	int r;

	if (from_id == to_id)
		return 0;
	if (!open_stacks_get(stacks, last_id))
		return -ENOMEM;
	from = &stacks->items.items[from_id];
	to = &stacks->items.items[to_id];
	if (n > from->frames.n)
		n = (uint32_t)from->frames.n;
	if (n == 0)
		return 0;
	r = vec_reserve(&to->frames, n);
	if (r < 0)
		return r;
	from->frames.n -= n;
	memcpy(to->frames.items + to->frames.n, from->frames.items + from->frames.n,
	       n * sizeof(*to->frames.items));
	to->frames.n += n;
	if (from->frames.n == 0)
		vec_deinit(&from->frames);
	return 0;
}
