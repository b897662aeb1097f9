/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Batches of any kind, for the call layer. The input is a list of events of two bytes: the first
 * says what happens (a run, a mark, a change of thread), the second where. Whatever happens, the
 * calls must nest, and all must be left.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/callcheck.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BLOCKS 80
#define NEAR   64 /* blocks that most events are of */
#define INSNS  4
#define RUNS   64

#define KERNEL UINT64_C(0xffff800000000000)

/* A symbol for each 8 blocks; those of "" have none. */
static const char *const names[] = { "",    "main",        "f",          "f.cold", "g@plt",
				     "g",   "swapcontext", "setcontext", "",       "runtime.mcall",
				     "gogo" };

static const uint8_t classes[] = {
	PTD_INSN_OTHER, PTD_INSN_JUMP_COND,     PTD_INSN_CALL,      PTD_INSN_RETURN,
	PTD_INSN_JUMP,  PTD_INSN_CALL,          PTD_INSN_RETURN,    PTD_INSN_JUMP_INDIRECT,
	PTD_INSN_CALL,  PTD_INSN_RETURN,        PTD_INSN_SYSCALL,   PTD_INSN_RETURN_FAR,
	PTD_INSN_CALL,  PTD_INSN_CALL_INDIRECT, PTD_INSN_INTERRUPT, PTD_INSN_OTHER,
};

struct input {
	struct ptd_object object;
	struct ptd_symbol symbols[ARRAY_LEN(names)];
	const struct ptd_symbol *by_id[ARRAY_LEN(names)];
	struct ptd_insn insns[BLOCKS][INSNS];
	struct ptd_block blocks[BLOCKS];
	struct ptd_slice slice;
	struct ptd_run runs[RUNS];
	struct ptd_mark marks[RUNS];
	struct ptd_batch batch;
	uint64_t t;
};

static void make_code(struct input *in)
{
	in->object = (struct ptd_object){ .name = "[demo]" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		in->symbols[i] =
		    (struct ptd_symbol){ .name = names[i], .address = (i - 1) * 8 * INSNS };
		in->by_id[i] = &in->symbols[i];
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		const uint32_t symbol = (uint32_t)(i / 8 + 1);

		for (size_t k = 0; k < INSNS; k++)
			in->insns[i][k] =
			    (struct ptd_insn){ (uint16_t)k, 1, PTD_INSN_OTHER,
					       names[symbol][0] ? symbol : PTD_NO_SYMBOL };
		in->insns[i][INSNS - 1].iclass = classes[(i * 7 + i / 8) % ARRAY_LEN(classes)];
		/* One is of two functions. */
		if (i == 23)
			in->insns[i][2].symbol = in->insns[i][3].symbol = symbol + 1;
		in->blocks[i] = (struct ptd_block){ .id = (uint32_t)i,
						    .n_insns = INSNS,
						    .size = INSNS,
						    .mode = 64,
						    .object = &in->object,
						    .address = i * INSNS,
						    .insns = in->insns[i],
						    .target = i % 5 ? 64 : INSNS };
	}
	in->batch = (struct ptd_batch){ .slice = &in->slice,
					.runs = in->runs,
					.marks = in->marks,
					.symbols = in->by_id,
					.n_symbols = ARRAY_LEN(in->by_id) };
	in->slice = (struct ptd_slice){ .pid = 1, .tid = 1, .comm = "" };
}

static void take_calls(struct ptd_calls *calls, struct callcheck *check)
{
	const struct ptd_call_batch *batch;
	const struct ptd_frame *frames;
	size_t n;

	while (ptd_calls_next(calls, &batch) == 0) {
		if (callcheck_calls(check, batch) < 0 ||
		    ptd_calls_stack(calls, batch->thread->id, &frames, &n) < 0)
			abort();
	}
}

static void give_batch(struct input *in, struct ptd_calls *calls, struct callcheck *check)
{
	if (ptd_calls_batch(calls, &in->batch) < 0)
		abort();
	take_calls(calls, check);
	in->batch.n_runs = in->batch.n_marks = 0;
}

static void add_mark(struct input *in, enum ptd_mark_kind kind, uint64_t ip)
{
	in->marks[in->batch.n_marks++] = (struct ptd_mark){
		.run = in->batch.n_runs, .kind = kind, .ip = ip, .value = PTD_TSX_ABORT, .t = in->t
	};
}

static void take_event(struct input *in, struct ptd_calls *calls, struct callcheck *check,
		       uint8_t what, uint8_t where)
{
	const struct ptd_block *block =
	    &in->blocks[(what & 0xf) == 0xf ? NEAR + where % (BLOCKS - NEAR) : where % NEAR];
	const uint64_t base = block->address + (what & 0x10 ? KERNEL : 0);

	in->t += what >> 5;
	switch (what & 0xf) {
	case 0:
		add_mark(in, PTD_MARK_GAP, 0);
		break;
	case 1:
		add_mark(in, PTD_MARK_ASYNC, base);
		break;
	case 2:
		add_mark(in, PTD_MARK_OFF, 0);
		break;
	case 3:
		add_mark(in, where & 1 ? PTD_MARK_TSX : PTD_MARK_STOP, 0);
		break;
	case 4:
		give_batch(in, calls, check);
		in->slice.id++;
		in->slice.tid = where % 4;
		in->slice.space = where >> 7;
		break;
	default:
		in->runs[in->batch.n_runs++] = (struct ptd_run){
			.block = block,
			.base = base,
			.t = in->t,
			.first = where >> 6 & 1,
			.n = (uint16_t)(INSNS - (where >> 6 & 1) - (where >> 7)),
		};
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input *in = calloc(1, sizeof(*in));
	struct callcheck check = { .faults = stderr };
	struct ptd_calls *calls;

	if (!in || ptd_calls_new(NULL, &calls) < 0)
		abort();
	make_code(in);
	for (size_t i = 0; i + 1 < size; i += 2) {
		take_event(in, calls, &check, data[i], data[i + 1]);
		if (in->batch.n_runs == RUNS || in->batch.n_marks == RUNS)
			give_batch(in, calls, &check);
	}
	give_batch(in, calls, &check);
	if (ptd_calls_finish(calls) < 0)
		abort();
	take_calls(calls, &check);
	callcheck_end(&check);
	if (check.n_faults > 0)
		abort();
	callcheck_deinit(&check);
	ptd_calls_free(calls);
	free(in);
	return 0;
}
