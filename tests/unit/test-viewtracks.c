/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* View tracks: which spans are shown where and when, for call streams made by hand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/sink/export/viewtracks.h"
#include "decoder/sink/output.h"
#include "tests/lib/callmade.h"
#include "tests/lib/failing.h"

struct fixture {
	struct output output; /* to which each operation writes a line */
	struct viewtracks tracks;
	struct callmade made[3];
	struct ptd_slice slice;
};

static int log_name(void *state, const struct viewtrack *track)
{
	struct fixture *f = state;

	output_printf(&f->output, "%" PRIu32 ": %" PRIu32 "/%" PRIu32 " %s%s\n", track->id,
		      track->pid, track->tid, track->comm ?: "-",
		      track->stack == VIEWTRACK_NONE ? "" : ", further");
	return f->output.error;
}

static int log_begin(void *state, const struct viewtrack *track, uint64_t t,
		     const struct open_frame *frame)
{
	struct fixture *f = state;

	output_printf(&f->output, "%" PRIu32 " %" PRIu64 " %s {\n", track->id, t,
		      frame->function->name);
	return f->output.error;
}

static int log_begin_gap(void *state, const struct viewtrack *track, uint64_t t,
			 const struct ptd_mark *mark)
{
	struct fixture *f = state;

	output_printf(&f->output, "%" PRIu32 " %" PRIu64 " %s {\n", track->id, t,
		      ptd_mark_kind_name(mark->kind));
	return f->output.error;
}

static int log_end(void *state, const struct viewtrack *track, uint64_t t,
		   const struct ptd_call *leave)
{
	struct fixture *f = state;

	output_printf(&f->output, "%" PRIu32 " %" PRIu64 " }%s\n", track->id, t, leave ? "" : " -");
	return f->output.error;
}

static int log_mark(void *state, const struct viewtrack *track, uint64_t t,
		    const struct ptd_mark *mark)
{
	struct fixture *f = state;

	output_printf(&f->output, "%" PRIu32 " %" PRIu64 " %s\n", track->id, t,
		      ptd_mark_kind_name(mark->kind));
	return f->output.error;
}

static int log_signal(void *state, const struct viewtrack *track,
		      const struct viewtrack_signal *signal)
{
	struct fixture *f = state;

	output_printf(&f->output, "%" PRIu32 " %" PRIu64 " signal %" PRIu32 "%s\n", track->id,
		      signal->t, signal->signal, signal->is_fatal ? "!" : "");
	return f->output.error;
}

static int log_run(void *state, uint32_t cpu, uint64_t t, const struct viewtrack *track, bool is_in)
{
	struct fixture *f = state;

	output_printf(&f->output, "cpu %" PRIu32 " %" PRIu64 " %s %" PRIu32 "\n", cpu, t,
		      is_in ? "in" : "out", track->id);
	return f->output.error;
}

static const struct viewtracks_ops ops = {
	.name = log_name,
	.begin = log_begin,
	.begin_gap = log_begin_gap,
	.end = log_end,
	.mark = log_mark,
	.signal = log_signal,
	.run = log_run,
};

static void init(struct fixture *f, enum ptd_clock clock)
{
	*f = (struct fixture){ .output = output_memory(),
			       .tracks = { .ops = &ops, .state = f, .clock = clock },
			       .slice = { .pid = 10, .tid = 11, .comm = "demo" } };
	for (uint32_t i = 0; i < 3; i++)
		callmade_init(&f->made[i], i, 11 + i);
}

static void deinit(struct fixture *f)
{
	viewtracks_deinit(&f->tracks);
	output_deinit(&f->output);
}

static int put(struct fixture *f, struct callmade *made)
{
	int r = 0;

	for (size_t i = 0; i < made->batch.n_calls && r == 0; i++)
		r = viewtracks_call(&f->tracks, &made->thread, &made->calls[i]);
	callmade_clear(made);
	return r;
}

static int put_mark(struct fixture *f, enum ptd_mark_kind kind, uint64_t t)
{
	return viewtracks_mark(&f->tracks, &f->slice, &(struct ptd_mark){ .kind = kind, .t = t });
}

/* Compare what was written since the last time. */
static void assert_log(struct fixture *f, const char *expected)
{
	_cleanup_(freep) char *text = strndup((const char *)f->output.buffer, f->output.n_used);

	assert_string_equal(text, expected);
	f->output.n_used = 0;
}

static void assert_end(struct fixture *f, const char *expected)
{
	assert_int_equal(viewtracks_finish(&f->tracks), 0);
	assert_log(f, expected);
	deinit(f);
}

/* Outer functions begin before what they contain, each 1 ns earlier. */
static void outer(void **state)
{
	struct fixture f;
	struct callmade *made = &f.made[0];

	(void)state;
	init(&f, PTD_CLOCK_NS);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_START, 1000, 0);
	callmade_leave(made, PTD_CALL_BY_RETURN, 1010, 0);
	made->first_depth = -1;
	callmade_enter(made, CALLMADE_G, PTD_CALL_BY_INFERENCE, 1000, 0);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, 1010, 0);
	callmade_leave(made, PTD_CALL_BY_RETURN, 1010, 0);
	callmade_leave(made, PTD_CALL_BY_TAIL, 1020, 0);
	/* It is not open since the start. */
	callmade_enter(made, CALLMADE_JIT, PTD_CALL_BY_TAIL, 1020, 0);
	callmade_leave(made, PTD_CALL_BY_RETURN, 1030, 0);
	callmade_enter(made, CALLMADE_MAIN, PTD_CALL_BY_INFERENCE, 1000, 0);
	callmade_leave(made, PTD_CALL_BY_END, 1040, 0);
	assert_int_equal(put(&f, made), 0);
	assert_end(&f, "0: 10/11 demo\n"
		       "0 1000 f {\n"
		       "0 1010 }\n"
		       "0 999 ns::g(int) {\n"
		       "0 1010 f {\n"
		       "0 1010 }\n"
		       "0 1020 }\n"
		       "0 1020 [anon]+0x10 {\n"
		       "0 1030 }\n"
		       "0 998 main {\n"
		       "0 1040 }\n");
}

/* Behind a gap there is room for the functions that were open before it, and the gap ends first. */
static void gap(void **state)
{
	struct fixture f;
	struct callmade *made = &f.made[0];

	(void)state;
	init(&f, PTD_CLOCK_NS);
	assert_int_equal(put_mark(&f, PTD_MARK_GAP, 1000), 0);
	assert_int_equal(put_mark(&f, PTD_MARK_OFF, 1000), 0);
	callmade_enter(made, CALLMADE_MAIN, PTD_CALL_BY_START, 1000, 0);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, 1001, 0);
	callmade_leave(made, PTD_CALL_BY_GAP, 1100, 0);
	callmade_leave(made, PTD_CALL_BY_GAP, 1100, 0);
	assert_int_equal(put(&f, made), 0);
	assert_int_equal(put_mark(&f, PTD_MARK_GAP, 1100), 0);
	assert_int_equal(put_mark(&f, PTD_MARK_GAP, 1101), 0);
	callmade_enter(made, CALLMADE_G, PTD_CALL_BY_START, 1102, 0);
	callmade_leave(made, PTD_CALL_BY_RETURN, 1103, 0);
	made->first_depth = -1;
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_RESUMPTION, 1102, 0);
	callmade_leave(made, PTD_CALL_BY_RETURN, 1110, 0);
	callmade_enter(made, CALLMADE_MAIN, PTD_CALL_BY_RESUMPTION, 1102, 0);
	callmade_leave(made, PTD_CALL_BY_RETURN, 2000, 0);
	assert_int_equal(put(&f, made), 0);
	assert_log(&f, "0: 10/11 demo\n"
		       "0 680 gap {\n"
		       "0 680 } -\n"
		       "0 1000 main {\n"
		       "0 1001 f {\n"
		       "0 1100 }\n"
		       "0 1100 }\n"
		       "0 1100 gap {\n"
		       "0 1101 } -\n"
		       "0 1101 gap {\n"
		       "0 1101 } -\n"
		       "0 1167 ns::g(int) {\n"
		       "0 1167 }\n"
		       "0 1166 f {\n"
		       "0 1167 }\n"
		       "0 1165 main {\n"
		       "0 2000 }\n");
	/* There is no room for more than 64 others. */
	for (unsigned int i = 0; i < 66; i++) {
		f.output.n_used = 0;
		callmade_enter(made, CALLMADE_JIT, PTD_CALL_BY_INFERENCE, 1102, 0);
		callmade_leave(made, PTD_CALL_BY_RETURN, 2000, 0);
		assert_int_equal(put(&f, made), 0);
		if (i == 63)
			assert_log(&f, "0 1101 [anon]+0x10 {\n"
				       "0 2000 }\n");
	}
	assert_log(&f, "");
	assert_int_equal(put_mark(&f, PTD_MARK_PTWRITE, 1050), 0);
	assert_int_equal(put_mark(&f, PTD_MARK_OUT_OF_SCOPE, 2010), 0);
	assert_int_equal(f.tracks.n_outer_left_out, 2);
	assert_end(&f, "0 1050 ptwrite\n"
		       "0 2010 out of scope {\n"
		       "0 2010 } -\n");
}

/* A further stack has a track of its own, which its next user in the process gets, too. */
static void stacks(void **state)
{
	struct fixture f;
	struct ptd_call to_new = { .kind = PTD_CALL_SWITCH, .stack = 1, .t = 1010 };
	struct ptd_call back = { .kind = PTD_CALL_SWITCH,
				 .t = 1020,
				 .function = &callmade_functions[CALLMADE_MAIN] };

	(void)state;
	init(&f, PTD_CLOCK_NS);
	f.made[1].thread = f.made[0].thread;
	callmade_enter(&f.made[0], CALLMADE_MAIN, PTD_CALL_BY_START, 1000, 0);
	assert_int_equal(put(&f, &f.made[0]), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(viewtracks_call(&f.tracks, &f.made[0].thread, &to_new), 0);
		callmade_enter(&f.made[1], CALLMADE_F, PTD_CALL_BY_START, 1010, 0);
		/* The calls are of thread 0, whose id callmade takes for the stack. */
		f.made[1].calls[0].stack = f.made[1].open[0].enter.stack = 1;
		assert_int_equal(put(&f, &f.made[1]), 0);
		assert_int_equal(viewtracks_call(&f.tracks, &f.made[0].thread, &back), 0);
		callmade_leave(&f.made[1], PTD_CALL_BY_END, 1030, 0);
		assert_int_equal(put(&f, &f.made[1]), 0);
	}
	callmade_leave(&f.made[0], PTD_CALL_BY_END, 1040, 0);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_end(&f, "0: 10/11 demo\n"
		       "0 1000 main {\n"
		       "1: 10/8388609 demo, further\n"
		       "1 1010 f {\n"
		       "1 1030 }\n"
		       "1 1030 f {\n"
		       "1 1030 }\n"
		       "0 1040 }\n");
}

/* Functions that were shown on the wrong track go on on the other one. */
static void moved(void **state)
{
	struct fixture f;
	struct ptd_call call = {
		.kind = PTD_CALL_SWITCH, .stack = 1, .moved_to = 0, .n_moved = 1, .t = 1050
	};

	(void)state;
	init(&f, PTD_CLOCK_NS);
	callmade_enter(&f.made[0], CALLMADE_MAIN, PTD_CALL_BY_START, 1000, 0);
	callmade_enter(&f.made[1], CALLMADE_G, PTD_CALL_BY_START, 1000, 0);
	callmade_enter(&f.made[1], CALLMADE_F, PTD_CALL_BY_CALL, 1010, 0);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_int_equal(put(&f, &f.made[1]), 0);
	call.function = &callmade_functions[CALLMADE_G];
	assert_int_equal(viewtracks_call(&f.tracks, &f.made[0].thread, &call), 0);
	callmade_leave(&f.made[0], PTD_CALL_BY_RETURN, 1060, 0);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_log(&f, "0: 10/11 demo\n"
		       "0 1000 main {\n"
		       "1: 10/12 demo\n"
		       "1 1000 ns::g(int) {\n"
		       "1 1010 f {\n"
		       "1 1050 } -\n"
		       "0 1050 f {\n"
		       "0 1060 }\n");
	/* More than there are, onto a stack that was never seen. */
	call = (struct ptd_call){
		.kind = PTD_CALL_SWITCH, .stack = 0, .moved_to = 7, .n_moved = 9, .t = 1070
	};
	assert_int_equal(viewtracks_call(&f.tracks, &f.made[0].thread, &call), 0);
	assert_end(&f, "2: 10/8388609 demo, further\n"
		       "0 1070 } -\n"
		       "2 1070 main {\n");
}

/* Each CPU has a thread 0: two that live at the same time do not share a track. */
static void threads(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, PTD_CLOCK_NS);
	f.made[1].thread.tid = 11;
	f.made[2].thread.tid = 11;
	for (unsigned int i = 0; i < 2; i++) {
		callmade_enter(&f.made[i], CALLMADE_MAIN, PTD_CALL_BY_START, 1000, 0);
		assert_int_equal(put(&f, &f.made[i]), 0);
	}
	callmade_leave(&f.made[0], PTD_CALL_BY_END, 1010, 0);
	assert_int_equal(put(&f, &f.made[0]), 0);
	f.made[0].thread.ended = true;
	f.made[2].thread.comm = "other";
	callmade_enter(&f.made[2], CALLMADE_F, PTD_CALL_BY_START, 2000, 0);
	assert_int_equal(put(&f, &f.made[2]), 0);
	f.slice.tid = PTD_ID_UNKNOWN;
	f.slice.comm = NULL;
	assert_int_equal(put_mark(&f, PTD_MARK_CBR, 1), 0);
	assert_end(&f, "0: 10/11 demo\n"
		       "0 1000 main {\n"
		       "1: 10/8388609 demo, further\n"
		       "1 1000 main {\n"
		       "0 1010 }\n"
		       "0: 10/11 other\n"
		       "0 2000 f {\n"
		       "2: 10/8388608 -\n"
		       "2 1 cbr\n");
}

/* Without time, instructions are shown. Time does not go back on a track. */
static void clocks(void **state)
{
	struct fixture f;
	struct ptd_batch batch = { .slice = &f.slice };

	(void)state;
	init(&f, PTD_CLOCK_NONE);
	assert_int_equal(viewtracks_batch(&f.tracks, &batch, 0), 0);
	callmade_enter(&f.made[0], CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
	callmade_leave(&f.made[0], PTD_CALL_BY_RETURN, 0, 100);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_int_equal(put_mark(&f, PTD_MARK_GAP, 0), 0);
	assert_end(&f, "0: 10/11 demo\n"
		       "0 1048576 main {\n"
		       "0 1048676 }\n"
		       "0 1048676 gap {\n"
		       "0 1048676 } -\n");

	init(&f, PTD_CLOCK_TSC);
	callmade_enter(&f.made[0], CALLMADE_MAIN, PTD_CALL_BY_START, 1000, 0);
	callmade_enter(&f.made[0], CALLMADE_F, PTD_CALL_BY_CALL, 900, 0);
	callmade_leave(&f.made[0], PTD_CALL_BY_RETURN, 950, 0);
	assert_int_equal(put(&f, &f.made[0]), 0);
	assert_end(&f, "0: 10/11 demo\n"
		       "0 1000 main {\n"
		       "0 1000 f {\n"
		       "0 1000 }\n");
}

/* A slice is a thread's stay on a CPU; signals are shown of threads that are in the stream. */
static void cpus(void **state)
{
	struct fixture f;
	struct ptd_run runs[] = { { .t = 1001 }, { .t = 1050 } };
	struct ptd_mark mark = { .t = 1060 };
	struct ptd_batch batch = { .slice = &f.slice, .runs = runs, .n_runs = 2 };
	const struct ptd_sideband records[] = {
		{ .kind = PTD_SIDEBAND_SIGNAL, .t = 1055, .pid = 10, .tid = 11, .signal = 10 },
		{ .kind = PTD_SIDEBAND_SIGNAL, .t = 1055, .pid = 10, .tid = 12, .signal = 10 },
		{ .kind = PTD_SIDEBAND_EXIT, .t = 1070, .pid = 10, .tid = 11, .signal = 11 },
		{ .kind = PTD_SIDEBAND_EXIT, .t = 1080, .pid = 10, .tid = 11 },
	};

	(void)state;
	init(&f, PTD_CLOCK_NS);
	for (size_t i = 0; i < ARRAY_LEN(records); i++)
		assert_int_equal(viewtracks_sideband(&f.tracks, &records[i]), 0);
	f.slice.t0 = 1000;
	assert_int_equal(viewtracks_batch(&f.tracks, &batch, 1050), 0);
	batch.marks = &mark;
	batch.n_marks = 1;
	assert_int_equal(viewtracks_batch(&f.tracks, &batch, mark.t), 0);
	f.slice = (struct ptd_slice){ .id = 1, .tid = 3, .cpu = 0, .t0 = 1055 };
	batch.n_marks = 0;
	assert_int_equal(viewtracks_batch(&f.tracks, &batch, 0), 0);
	assert_end(&f, "0: 10/11 demo\n"
		       "cpu 0 1000 in 0\n"
		       "cpu 0 1060 out 0\n"
		       "1: 0/3 -\n"
		       "cpu 0 1060 in 1\n"
		       "cpu 0 1060 out 1\n"
		       "0 1055 signal 10\n"
		       "0 1070 signal 11!\n");
}

static int show_some(void *userdata)
{
	struct fixture *f = userdata;
	struct ptd_call call = { .kind = PTD_CALL_SWITCH, .stack = 1, .n_moved = 1, .moved_to = 3 };
	struct ptd_batch batch = { .slice = &f->slice };
	int r;

	init(f, PTD_CLOCK_NS);
	callmade_enter(&f->made[0], CALLMADE_MAIN, PTD_CALL_BY_START, 1000, 0);
	callmade_enter(&f->made[1], CALLMADE_MAIN, PTD_CALL_BY_START, 1000, 0);
	r = viewtracks_sideband(
	    &f->tracks,
	    &(struct ptd_sideband){ .kind = PTD_SIDEBAND_SIGNAL, .pid = 10, .tid = 11 });
	if (r == 0)
		r = viewtracks_batch(&f->tracks, &batch, 0);
	if (r == 0)
		r = put(f, &f->made[0]);
	if (r == 0)
		r = put(f, &f->made[1]);
	if (r == 0)
		r = viewtracks_call(&f->tracks, &f->made[1].thread, &call);
	if (r == 0)
		r = put_mark(f, PTD_MARK_GAP, 2000);
	if (r == 0)
		r = viewtracks_finish(&f->tracks);
	if (r < 0)
		deinit(f);
	return r;
}

static void check_some(void *userdata)
{
	struct fixture *f = userdata;

	assert_int_equal(f->tracks.all.n, 3);
	deinit(f);
}

static void failures(void **state)
{
	struct fixture f;

	(void)state;
	failing_each(show_some, check_some, &f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outer), cmocka_unit_test(gap),      cmocka_unit_test(stacks),
		cmocka_unit_test(moved), cmocka_unit_test(threads),  cmocka_unit_test(clocks),
		cmocka_unit_test(cpus),  cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
