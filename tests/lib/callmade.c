/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/callmade.h"

#include <assert.h>

#include "base/base.h"

static const struct ptd_object objects[] = {
	{ .id = 0, .name = "/bin/demo" },
	{ .id = 1, .name = "/lib/libg.so" },
	{ .id = 2, .name = "[anon]" },
};

const struct ptd_function callmade_functions[] = {
	{ .id = 0, .symbol = 1, .object = &objects[0], .name = "main", .address = 0x1000 },
	{ .id = 1, .symbol = 2, .object = &objects[0], .name = "f", .address = 0x1100 },
	{ .id = 2, .symbol = 3, .object = &objects[1], .name = "ns::g(int)", .address = 0x2000 },
	{ .id = 3, .object = &objects[2], .name = "[anon]+0x10", .address = 0x10 },
};

void callmade_init(struct callmade *made, uint32_t id, uint32_t tid)
{
	*made = (struct callmade){ .thread = { .id = id, .pid = 10, .tid = tid, .comm = "demo" } };
	callmade_clear(made);
}

static struct ptd_call *add(struct callmade *made)
{
	assert(made->batch.n_calls < ARRAY_LEN(made->calls));
	return &made->calls[made->batch.n_calls++];
}

void callmade_enter(struct callmade *made, enum callmade_name name, enum ptd_call_how how,
		    uint64_t t, uint64_t n_insns)
{
	const struct ptd_call call = {
		.kind = PTD_CALL_ENTER,
		.how = (uint8_t)how,
		.depth = made->first_depth + (int32_t)made->n_open,
		.stack = made->thread.id,
		.function = &callmade_functions[name],
		.t = t,
		.n_insns = n_insns,
	};

	assert(made->n_open < ARRAY_LEN(made->open));
	*add(made) = call;
	made->open[made->n_open].t_inner = made->open[made->n_open].n_insns_inner = 0;
	made->open[made->n_open++].enter = call;
}

void callmade_leave(struct callmade *made, enum ptd_call_how how, uint64_t t, uint64_t n_insns)
{
	struct ptd_call call;
	size_t i;

	assert(made->n_open > 0);
	i = --made->n_open;
	call = made->open[i].enter;
	call.kind = PTD_CALL_LEAVE;
	call.how = (uint8_t)how;
	call.t_total = t - call.t;
	call.n_insns_total = n_insns - call.n_insns;
	call.t_self = call.t_total - made->open[i].t_inner;
	call.n_insns_self = call.n_insns_total - made->open[i].n_insns_inner;
	call.t = t;
	call.n_insns = n_insns;
	if (i > 0) {
		made->open[i - 1].t_inner += call.t_total;
		made->open[i - 1].n_insns_inner += call.n_insns_total;
	}
	*add(made) = call;
}

void callmade_clear(struct callmade *made)
{
	made->batch = (struct ptd_call_batch){ .thread = &made->thread, .calls = made->calls };
}
