/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/loggedmade.h"
#include "tests/lib/kinds.h"

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

void loggedmade_init(struct loggedmade *made, const struct sink_ops *ops, const char *dir,
		     const char *option)
{
	const char *const options[] = { option, NULL };

	*made = (struct loggedmade){
		.info = { .clock = PTD_CLOCK_NS, .realtime_offset_ns = 1000000000123456789 },
		.slice = { .cpu = 2, .pid = 5, .tid = 70000, .comm = "my demo.x" },
		.logged.batch = { .symbols = by_id, .n_symbols = ARRAY_LEN(by_id) },
	};
	assert_int_equal(sink_open(ops, dir, &made->info, options, &made->sink), 0);
}

void loggedmade_deinit(struct loggedmade *made)
{
	made->sink = sink_free(made->sink);
}

void loggedmade_put(struct loggedmade *made, enum ptd_logged_kind kind, uint32_t symbol, uint64_t t)
{
	assert_true(made->logged.n_calls < LOGGEDMADE_MAX);
	made->calls[made->logged.n_calls++] = (struct ptd_logged_call){
		.t = t, .object = &made->object, .symbol = symbol, .kind = (uint8_t)kind
	};
}

void loggedmade_put_mark(struct loggedmade *made, enum ptd_mark_kind kind, uint64_t t)
{
	assert_true(made->logged.batch.n_marks < LOGGEDMADE_MAX);
	made->marks[made->logged.batch.n_marks++] = (struct ptd_mark){
		.kind = kind, .run = made->logged.n_calls, .t = t, .n_bytes = 9, .value = 0x2a
	};
}

void loggedmade_flush(struct loggedmade *made)
{
	made->logged.batch.slice = &made->slice;
	made->logged.calls = made->calls;
	made->logged.batch.marks = made->marks;
	assert_int_equal(sink_logged(made->sink, &made->logged), 0);
	made->logged.n_calls = made->logged.batch.n_marks = 0;
}
