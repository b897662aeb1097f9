/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/region.h"

#include <errno.h>

#include "decoder/sink/answer/executions.h"
#include "decoder/sink/answer/profile.h"
#include "ptd/decode.h"

int region_init(struct region *region, const struct ptd_info *info, const char *function,
		uint64_t number)
{
	*region = (struct region){ .function = function, .number = number };
	return ptd_calls_new(info, &region->calls);
}

void region_deinit(struct region *region)
{
	vec_deinit(&region->open);
	ptd_calls_free(region->calls);
	*region = (struct region){};
}

/* Return: the outermost call of the function on the stack; NULL: no memory. */
static struct region_call *open_on(struct region *region, uint32_t stack)
{
	while (region->open.n <= stack)
		if (vec_push(&region->open, {}) < 0)
			return NULL;
	return &region->open.items[stack];
}

static void begin(struct region *region, const struct ptd_slice *slice, const struct ptd_call *call,
		  struct region_part *part)
{
	region->is_inside = true;
	region->stack = call->stack;
	region->pid = slice->pid;
	region->tid = slice->tid;
	part->begins = true;
	part->from = call->run;
}

static void end(struct region *region, const struct ptd_call *call, struct region_part *part)
{
	region->is_inside = false;
	region->is_over = true;
	part->to = call->run;
}

/* The function is entered or left. Return: 0 or -ENOMEM. */
static int take_call(struct region *region, const struct ptd_slice *slice,
		     const struct ptd_call *call, struct region_part *part)
{
	struct region_call *open = open_on(region, call->stack);

	if (!open)
		return -ENOMEM;
	if (call->kind == PTD_CALL_LEAVE && open->is_open && open->depth == call->depth) {
		open->is_open = false;
		if (region->is_inside && region->stack == call->stack)
			end(region, call, part);
	} else if (call->kind == PTD_CALL_ENTER && !open->is_open) {
		*open = (struct region_call){ true, call->depth };
		if (!profile_goes_on(call->how) && ++region->n_begun == region->number)
			begin(region, slice, call, part);
	}
	return 0;
}

/* What is moved to another stack is not followed there. */
static void take_move(struct region *region, const struct ptd_call *call, struct region_part *part)
{
	struct region_call *open;

	if (call->n_moved == 0 || call->stack >= region->open.n)
		return;
	open = &region->open.items[call->stack];
	if (!open->is_open || open->depth <= call->depth)
		return;
	open->is_open = false;
	if (region->is_inside && region->stack == call->stack)
		end(region, call, part);
}

int region_batch(struct region *region, const struct ptd_batch *batch, struct region_part *ret_part)
{
	const bool is_inside = region->is_inside && region->pid == batch->slice->pid &&
			       region->tid == batch->slice->tid;
	struct region_part part = { .from = is_inside ? 0 : batch->n_runs, .to = batch->n_runs };
	const struct ptd_call_batch *found;
	int r;

	r = ptd_calls_batch(region->calls, batch);
	while (r == 0 && (r = ptd_calls_next(region->calls, &found)) == 0)
		for (size_t i = 0; r == 0 && i < found->n_calls; i++) {
			const struct ptd_call *call = &found->calls[i];

			if (call->kind == PTD_CALL_SWITCH)
				take_move(region, call, &part);
			else if (executions_name_is(call->function->name, region->function))
				r = take_call(region, batch->slice, call, &part);
		}
	if (r != PTD_END)
		return r;
	if (part.to < part.from)
		part.to = part.from;
	*ret_part = part;
	return 0;
}
