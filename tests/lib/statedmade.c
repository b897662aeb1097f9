/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/statedmade.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"

static const struct ptd_symbol symbols[] = {
	{ .name = "" },
	{ .name = "f", .address = 0x1000 },
	{ .name = "say \"hi\\;\"\n", .address = 0x2000 },
	{ .name = "h(int)", .address = 0x3000 },
};

static const struct ptd_symbol *const by_id[] = { &symbols[0], &symbols[1], &symbols[2],
						  &symbols[3] };

void statedmade_init(struct statedmade *made, const struct ptd_sink_ops *ops, const char *dir,
		     const char *option)
{
	const char *const options[] = { option, NULL };

	*made = (struct statedmade){
		.info = { .clock = PTD_CLOCK_NS, .realtime_offset_ns = 1000000000123456789 },
		.slice = { .cpu = 2, .pid = 5, .tid = 70000, .comm = "my demo.x" },
		.batch = { .symbols = by_id, .n_symbols = ARRAY_LEN(by_id) },
	};
	assert_int_equal(ptd_sink_open(ops, dir, &made->info, options, &made->sink), 0);
}

void statedmade_deinit(struct statedmade *made)
{
	made->sink = ptd_sink_free(made->sink);
}

void statedmade_put(struct statedmade *made, enum ptd_stated_kind kind, uint32_t symbol, uint64_t t)
{
	assert_true(made->batch.n_stated < STATEDMADE_MAX);
	made->stated[made->batch.n_stated++] = (struct ptd_stated_call){
		.t = t, .object = &made->object, .symbol = symbol, .kind = (uint8_t)kind
	};
}

void statedmade_put_mark(struct statedmade *made, enum ptd_mark_kind kind, uint64_t t)
{
	assert_true(made->batch.n_marks < STATEDMADE_MAX);
	made->marks[made->batch.n_marks++] = (struct ptd_mark){
		.kind = kind, .run = made->batch.n_stated, .t = t, .n_bytes = 9, .value = 0x2a
	};
}

void statedmade_flush(struct statedmade *made)
{
	made->batch.slice = &made->slice;
	made->batch.stated = made->stated;
	made->batch.marks = made->marks;
	assert_int_equal(ptd_sink_batch(made->sink, &made->batch), 0);
	made->batch.n_stated = made->batch.n_marks = 0;
}
