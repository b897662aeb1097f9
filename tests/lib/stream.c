/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/stream.h"

#include "base/base.h"

static const uint8_t hot_bytes[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 0xf7, 0x0f, 0x00, 0x00 };
static const struct ptd_insn hot_insns[] = {
	{ .offset = 0, .size = 1, .iclass = PTD_INSN_OTHER, .symbol = 1 },
	{ .offset = 1, .size = 3, .iclass = PTD_INSN_OTHER, .symbol = 1 },
	{ .offset = 4, .size = 5, .iclass = PTD_INSN_CALL, .symbol = 1 },
};

static const uint8_t cold_bytes[] = { 0x90, 0x0f, 0x84, 0xf9, 0xef, 0xff, 0xff };
static const struct ptd_insn cold_insns[] = {
	{ .offset = 0, .size = 1, .iclass = PTD_INSN_OTHER, .symbol = 2 },
	{ .offset = 1, .size = 6, .iclass = PTD_INSN_JUMP_COND, .symbol = 2 },
};

static const uint8_t jit_bytes[] = { 0x0f, 0x05 };
static const struct ptd_insn jit_insns[] = {
	{ .offset = 0, .size = 2, .iclass = PTD_INSN_SYSCALL, .symbol = PTD_NO_SYMBOL },
};

const uint64_t stream_addresses[] = {
	STREAM_BASE + STREAM_HOT,
	STREAM_BASE + STREAM_HOT + 1,
	STREAM_BASE + STREAM_HOT + 4,
	STREAM_BASE + STREAM_HOT,
	STREAM_BASE + STREAM_HOT + 1,
	STREAM_BASE + STREAM_HOT + 4,
	STREAM_BASE + STREAM_COLD + 1,
	STREAM_JIT,
	0,
};

static void init_code(struct stream *s)
{
	s->objects[0] = (struct ptd_object){ .id = 0, .name = "/bin/demo", .source = "/bin/demo" };
	s->objects[1] = (struct ptd_object){ .id = 1, .name = "[jit]" };
	s->symbols[0] = (struct ptd_symbol){ .name = "" };
	s->symbols[1] = (struct ptd_symbol){ .name = "main", .address = STREAM_HOT };
	for (size_t i = 0; i < ARRAY_LEN(s->by_id); i++)
		s->by_id[i] = &s->symbols[i];
	s->symbols[2] = (struct ptd_symbol){ .name = "ns::f(int)", .address = STREAM_COLD - 0x10 };
	s->hot = (struct ptd_block){
		.id = 0,
		.n_insns = ARRAY_LEN(hot_insns),
		.size = sizeof(hot_bytes),
		.mode = 64,
		.object = &s->objects[0],
		.address = STREAM_HOT,
		.bytes = hot_bytes,
		.insns = hot_insns,
		.target = STREAM_COLD - STREAM_HOT,
	};
	s->cold = (struct ptd_block){
		.id = 2,
		.n_insns = ARRAY_LEN(cold_insns),
		.size = sizeof(cold_bytes),
		.mode = 64,
		.object = &s->objects[0],
		.address = STREAM_COLD,
		.bytes = cold_bytes,
		.insns = cold_insns,
		.target = (int64_t)STREAM_HOT - (int64_t)STREAM_COLD,
	};
	s->jit = (struct ptd_block){
		.id = 1,
		.n_insns = ARRAY_LEN(jit_insns),
		.size = sizeof(jit_bytes),
		.mode = 64,
		.object = &s->objects[1],
		.address = 0,
		.bytes = jit_bytes,
		.insns = jit_insns,
	};
}

static void init_flow(struct stream *s)
{
	const uint64_t t = 1000000005;

	s->slice = (struct ptd_slice){
		.id = 0, .cpu = 3, .pid = 10, .tid = 11, .space = 1, .t0 = t, .comm = "demo"
	};
	s->runs[0] = (struct ptd_run){ &s->hot, STREAM_BASE + STREAM_HOT, t, 0, 3, false };
	s->runs[1] = (struct ptd_run){ &s->hot, STREAM_BASE + STREAM_HOT, t, 0, 3, false };
	s->runs[2] = (struct ptd_run){ &s->cold, STREAM_BASE + STREAM_COLD, t + 100, 1, 1, false };
	s->runs[3] = (struct ptd_run){ &s->jit, STREAM_JIT, t + 1000000000, 0, 1, false };
	s->marks[0] = (struct ptd_mark){
		.run = 1, .kind = PTD_MARK_ASYNC, .t = t, .ip = STREAM_BASE + STREAM_COLD
	};
	s->marks[1] = (struct ptd_mark){
		.run = 2,
		.kind = PTD_MARK_GAP,
		.reason = PTD_GAP_OVERFLOW,
		.t = t + 50,
		.offset = 0x1234,
		.n_bytes = 7,
	};
	s->marks[2] = (struct ptd_mark){
		.run = 4, .kind = PTD_MARK_OFF, .t = t + 1000000000, .ip = STREAM_JIT
	};
}

void stream_init(struct stream *s)
{
	init_code(s);
	init_flow(s);
	s->batch = (struct ptd_batch){
		.slice = &s->slice,
		.runs = s->runs,
		.n_runs = ARRAY_LEN(s->runs),
		.marks = s->marks,
		.n_marks = ARRAY_LEN(s->marks),
		.symbols = s->by_id,
		.n_symbols = ARRAY_LEN(s->by_id),
	};
	s->cpu = (struct ptd_cpu_stats){
		.cpu = 3,
		.bytes_in = 100,
		.bytes_decoded = 93,
		.bytes_lost = 7,
		.n_insns = 8,
		.n_gaps = 1,
		.t_first = 1000000005,
		.t_last = 2000000005,
	};
	s->n_gaps[PTD_GAP_OVERFLOW] = 1;
	s->gap_bytes[PTD_GAP_OVERFLOW] = 7;
	s->stats = (struct ptd_stats){
		.cpus = &s->cpu,
		.n_cpus = 1,
		.n_gaps = s->n_gaps,
		.gap_bytes = s->gap_bytes,
		.n_gap_reasons = _PTD_GAP_REASONS,
	};
}
