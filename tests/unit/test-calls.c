/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The call layer: for each of its rules a stream made by hand, and the calls that it must give; and
 * that what it keeps is bounded. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "decoder/calls/callthread.h"
#include "decoder/calls/stackpool.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/callcheck.h"

/*
 * The code: each instruction has one byte. A symbol reaches to the next one; what is called "" is
 * code without a symbol.
 */
static const struct ptd_jit_note jit_note = { .t = 1, .address = 0xf500, .size = 0x10 };

static const struct ptd_symbol code[] = {
	{ .name = "main", .address = 0x1000 },
	{ .name = "f", .address = 0x2000 },
	{ .name = "g", .address = 0x3000 },
	{ .name = "h", .address = 0x4000 },
	{ .name = "f.cold", .address = 0x5000 },
	{ .name = "h@plt", .address = 0x6000 },
	{ .name = "g@plt", .address = 0x6010 },
	{ .name = "", .address = 0x6020 }, /* the PLT's beginning */
	{ .name = "resolve", .address = 0x7000 },
	{ .name = "restore", .address = 0x8000 },
	{ .name = "", .address = 0x9000 }, /* no symbols */
	{ .name = "__x86_indirect_thunk_rax", .address = 0xa000 },
	{ .name = "__x86_return_thunk", .address = 0xa100 },
	{ .name = "__x86_indirect_paranoid_thunk_r11", .address = 0xa200 },
	{ .name = "__x86_indirect_its_thunk_r11", .address = 0xa202 },
	{ .name = "call_depth_return_thunk", .address = 0xa300 },
	{ .name = "clear_bhb_loop", .address = 0xa400 },
	{ .name = "__pfx_g", .address = 0xa500 },
	{ .name = "g", .address = 0xa510 },
	{ .name = "__cfi_f", .address = 0xa600 },
	{ .name = "f", .address = 0xa610 },
	{ .name = "__bhi_args_1", .address = 0xa700 },
	{ .name = "uretprobe_trampoline", .address = 0xa800 },
	{ .name = "(anonymous namespace)::k(int)", .address = 0xb000 },
	{ .name = "(anonymous namespace)::k(int) [clone .cold]", .address = 0xb100 },
	{ .name = "__swapcontext", .address = 0xc000 },
	{ .name = "__start_context", .address = 0xc100 },
	{ .name = "setcontext", .address = 0xc200 },
	{ .name = "runtime.mcall", .address = 0xd000 },
	{ .name = "runtime.gogo.abi0", .address = 0xd100 },
	{ .name = "gogo", .address = 0xd200 },
	{ .name = "runtime.morestack_noctxt.abi0", .address = 0xd300 },
	{ .name = "runtime.morestack.abi0", .address = 0xd400 },
	{ .name = "runtime.goexit0", .address = 0xd500 },
	{ .name = "demo+0xe000", .address = 0xe000 },
	{ .name = "demo+0xe100", .address = 0xe100 },
	{ .name = "demo+0xe200.cold", .address = 0xe200 },
	{ .name = "JS:~run /s.js:1:1", .address = 0xf000 },
	{ .name = "JS:^run /s.js:1:1", .address = 0xf100 },
	{ .name = "JS:*run /s.js:2:1", .address = 0xf200 },
	{ .name = "Builtins_InterpreterEntryTrampoline", .address = 0xf300 },
	{ .name = "Builtin:BaselineOutOfLinePrologue", .address = 0xf400 },
	{ .name = "jitted", .address = 0xf500, .jit = &jit_note },
	{ .name = "jitted", .address = 0xf600, .jit = &jit_note }, /* bytes that were changed */
	{ .name = "entry", .address = 0xffff800000001000 },
	{ .name = "work", .address = 0xffff800000002000 },
	{ .name = "", .address = 0xffffffffc0009000 }, /* thunks of a module */
};

#define BLOCKS 256
#define INSNS  16
#define RUNS   256
#define MARKS  32

struct fixture {
	struct ptd_object objects[2]; /* the program, and what has no symbols at 0x9000 */
	const struct ptd_symbol *by_id[ARRAY_LEN(code) + 1];
	struct ptd_block blocks[BLOCKS];
	struct ptd_insn insns[BLOCKS][INSNS];
	size_t n_blocks;

	struct ptd_slice slice;
	struct ptd_run runs[RUNS];
	struct ptd_mark marks[MARKS];
	struct ptd_batch batch;
	uint64_t t;

	struct ptd_calls *calls;
	struct callcheck check;
	bool is_quiet; /* only the check sees the calls */
	bool is_cut;   /* each run is a batch of its own */
	char text[8192];
	size_t n_text;
};

static uint32_t symbol_at(uint64_t address)
{
	size_t i = ARRAY_LEN(code);

	while (i > 0 && code[i - 1].address > address)
		i--;
	return i > 0 && code[i - 1].name[0] ? (uint32_t)i : PTD_NO_SYMBOL;
}

/* Return: the block of @n instructions at @address, whose last one has the class @iclass. */
static const struct ptd_block *find_block(struct fixture *f, uint64_t address, uint16_t n,
					  enum ptd_insn_class iclass, uint64_t target)
{
	struct ptd_block *b;

	for (size_t i = 0; i < f->n_blocks; i++) {
		b = &f->blocks[i];
		if (b->address == address && b->n_insns == n && b->insns[n - 1].iclass == iclass)
			return b;
	}
	assert_true(f->n_blocks < BLOCKS && n <= INSNS);
	b = &f->blocks[f->n_blocks];
	*b = (struct ptd_block){ .id = (uint32_t)f->n_blocks,
				 .n_insns = n,
				 .size = n,
				 .mode = 64,
				 .object = &f->objects[address >> 12 == 9],
				 .address = address,
				 .insns = f->insns[f->n_blocks],
				 .target = (int64_t)(target - address) };
	for (uint16_t i = 0; i < n; i++)
		f->insns[f->n_blocks][i] =
		    (struct ptd_insn){ .offset = i, .size = 1, .symbol = symbol_at(address + i) };
	f->insns[f->n_blocks++][n - 1].iclass = (uint8_t)iclass;
	return b;
}

static const struct {
	char letter;
	enum ptd_insn_class iclass;
} classes[] = {
	{ 'o', PTD_INSN_OTHER },     { 'j', PTD_INSN_JUMP },       { 'J', PTD_INSN_JUMP_INDIRECT },
	{ 'b', PTD_INSN_JUMP_COND }, { 'c', PTD_INSN_CALL },       { 'C', PTD_INSN_CALL_INDIRECT },
	{ 'r', PTD_INSN_RETURN },    { 'R', PTD_INSN_RETURN_FAR }, { 's', PTD_INSN_SYSCALL },
	{ 'i', PTD_INSN_INTERRUPT },
};

static enum ptd_insn_class class_of(char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (classes[i].letter == letter)
			return classes[i].iclass;
	fail();
	return PTD_INSN_OTHER;
}

static void say_call(struct fixture *f, const struct ptd_call *call)
{
	int n;

	if (f->is_quiet)
		return;
	if (call->kind == PTD_CALL_SWITCH)
		n = snprintf(f->text + f->n_text, sizeof(f->text) - f->n_text,
			     call->n_moved ? "%s=%u(%u)%s" : "%s=%u%.0u%s", f->n_text ? " " : "",
			     call->stack, call->n_moved, call->ambiguous ? "?" : "");
	else
		n = snprintf(f->text + f->n_text, sizeof(f->text) - f->n_text, "%s%c%s:%s@%d%s",
			     f->n_text ? " " : "", call->kind == PTD_CALL_ENTER ? '+' : '-',
			     call->function->name, ptd_call_how_name((enum ptd_call_how)call->how),
			     call->depth, call->ambiguous ? "?" : "");
	f->n_text += (size_t)n;
	assert_true(f->n_text < sizeof(f->text));
}

static void take_calls(struct fixture *f)
{
	const struct ptd_call_batch *batch;

	while (ptd_calls_next(f->calls, &batch) == 0) {
		assert_int_equal(callcheck_calls(&f->check, batch), 0);
		for (size_t i = 0; i < batch->n_calls; i++)
			say_call(f, &batch->calls[i]);
	}
}

static void give_batch(struct fixture *f)
{
	if (f->batch.n_runs + f->batch.n_marks == 0)
		return;
	assert_int_equal(ptd_calls_batch(f->calls, &f->batch), 0);
	take_calls(f);
	f->batch.n_runs = f->batch.n_marks = 0;
}

static void add_mark(struct fixture *f, enum ptd_mark_kind kind, uint64_t ip)
{
	assert_true(f->batch.n_marks < MARKS);
	f->marks[f->batch.n_marks++] =
	    (struct ptd_mark){ .run = f->batch.n_runs, .kind = kind, .ip = ip, .t = f->t };
}

/* Take one word of a stream, see streams[]. */
static void take_word(struct fixture *f, const char *word)
{
	uint64_t address, target = 0;
	unsigned int n, first = 0;
	char letter;

	f->t += 10;
	if (strcmp(word, "gap") == 0) {
		add_mark(f, PTD_MARK_GAP, 0);
	} else if (strcmp(word, "off") == 0) {
		add_mark(f, PTD_MARK_OFF, 0);
	} else if (sscanf(word, "async@%" SCNx64, &address) == 1) {
		add_mark(f, PTD_MARK_ASYNC, address);
	} else if (strcmp(word, "slice") == 0) {
		give_batch(f);
		f->slice.id++;
	} else if (sscanf(word, "tid%u", &n) == 1) {
		give_batch(f);
		f->slice.id++;
		f->slice.tid = n;
	} else if (sscanf(word, "t%u", &n) == 1) {
		f->t = n;
	} else if (sscanf(word, "space%u", &n) == 1) {
		give_batch(f);
		f->slice.id++;
		f->slice.space = n;
	} else {
		/* In part: from the second instruction on, or without the last ones. */
		const char *plus = strchr(word, '+');

		assert_true(
		    sscanf(word, "%" SCNx64 ":%u%c>%" SCNx64, &address, &n, &letter, &target) >= 3);
		if (plus)
			first = (unsigned int)atoi(plus + 1);
		assert_true(f->batch.n_runs < RUNS);
		f->runs[f->batch.n_runs++] = (struct ptd_run){
			.block = find_block(f, address, (uint16_t)n, class_of(letter), target),
			.base = address,
			.t = f->t,
			.first = (uint16_t)first,
			.n = (uint16_t)(n - first),
		};
		if (f->is_cut)
			give_batch(f);
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	static const struct ptd_symbol none = { .name = "" };

	if (!f)
		return -1;
	f->objects[0] = (struct ptd_object){ .id = 0, .name = "/bin/demo" };
	f->objects[1] = (struct ptd_object){ .id = 1, .name = "/lib/stripped.so" };
	f->by_id[0] = &none;
	for (size_t i = 0; i < ARRAY_LEN(code); i++)
		f->by_id[i + 1] = &code[i];
	f->batch = (struct ptd_batch){ .slice = &f->slice,
				       .runs = f->runs,
				       .marks = f->marks,
				       .symbols = f->by_id,
				       .n_symbols = ARRAY_LEN(f->by_id) };
	f->slice = (struct ptd_slice){ .pid = 10, .tid = 11, .comm = "demo" };
	f->check.faults = stderr;
	assert_int_equal(ptd_calls_new(NULL, &f->calls), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ptd_calls_free(f->calls);
	callcheck_deinit(&f->check);
	free(f);
	return 0;
}

/* Give the whole stream to the layer. */
static void run_stream(struct fixture *f, const char *stream)
{
	_cleanup_(freep) char *copy = strdup(stream);
	char *rest = NULL;

	assert_non_null(copy);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		take_word(f, word);
	give_batch(f);
	assert_int_equal(ptd_calls_finish(f->calls), 0);
	take_calls(f);
	callcheck_end(&f->check);
	assert_int_equal(f->check.n_faults, 0);
}

/*
 * A stream is words: "ADDRESS:Nc" is a run of N instructions at ADDRESS, the last of which is of
 * the class c (see classes[]; ">TARGET" is where it leads to, which counts of jumps and direct
 * calls), "+K" without its first K ones; a mark; or "slice", "tidN", "spaceN", "tN" (the time) for
 * what comes then.
 * A call is + or -, the function, how, and the depth; or =, the stack that the thread is on, and in
 * parentheses how many functions it lost to the other one. "?" stands for ambiguous.
 */
static const struct {
	const char *what, *stream, *calls;
} streams[] = {
	{ "a call and its return", "1000:3c>2000 2000:2r 1003:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a jump between the bytes that a JIT compiler noted and those that it changed",
	  "1000:3c>f500 f500:2j>f602 f602:1r 1003:1c>f600 f600:2j>f503 f503:1r 1004:1o",
	  "+main:start@0 +jitted:call@1 -jitted:return@1 +jitted:call@1 -jitted:return@1 "
	  "-main:end@0" },
	{ "recursion that is seen first in its middle", "2005:1r 2003:1r 1001:1o",
	  "+f:start@0 -f:return@0 +f:inference@-1 -f:return@-1 +main:inference@-2 -main:end@-2" },
	{ "calls in calls", "1000:1C 2000:1C 3000:1r 2001:1r 1001:1C 4000:1r 1002:1o",
	  "+main:start@0 +f:call@1 +g:call@2 -g:return@2 -f:return@1 +h:call@1 -h:return@1 "
	  "-main:end@0" },
	{ "recursion", "1000:1c>2000 2000:1c>2000 2000:1c>2000 2000:2r 2001:1r 2001:1r 1001:1o",
	  "+main:start@0 +f:call@1 +f:call@2 +f:call@3 -f:return@3 -f:return@2 -f:return@1 "
	  "-main:end@0" },
	{ "jumps within a function",
	  "1000:1C 2000:2b>2004 2004:2j>2000 2000:2b>2004 2002:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "tail calls by each kind of jump",
	  "1000:1C 2000:2j>3000 3000:1J 4000:1b>2000 2000:3r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:tail call@1 +h:tail call@1 "
	  "-h:tail call@1 +f:tail call@1 -f:return@1 -main:end@0" },
	{ "falling through into the next function", "1000:1C 2ffe:4r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:return@1 -main:end@0" },
	{ "a cold part belongs to its function",
	  "1000:1C 2000:1b>5000 5000:2j>2002 2002:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a cold part of a C++ function", "1000:1C b000:1b>b100 b100:2j>b002 b002:1r 1001:1o",
	  "+main:start@0 +(anonymous namespace)::k(int):call@1 "
	  "-(anonymous namespace)::k(int):return@1 -main:end@0" },
	{ "another function's cold part is another function",
	  "1000:1C 3000:1j>5000 5000:2r 1001:1o",
	  "+main:start@0 +g:call@1 -g:tail call@1 +f.cold:tail call@1 -f.cold:return@1 "
	  "-main:end@0" },
	{ "a part without a name belongs to the first function that jumps to it",
	  "1000:1C e100:1b>e200 e200:1C 2000:1r e201:1r 1001:1C 3000:1j>e200 e200:2r 1002:1o",
	  "+main:start@0 +demo+0xe100:call@1 +f:call@2 -f:return@2 -demo+0xe100:return@1 "
	  "+g:call@1 -g:tail call@1 +demo+0xe200.cold:tail call@1 -demo+0xe200.cold:return@1 "
	  "-main:end@0" },
	{ "a script's function goes on in better code",
	  "1000:1C f000:1C 2000:2r f105:1C 3000:1r f106:1r 1001:1o",
	  "+main:start@0 +JS:~run /s.js:1:1:call@1 +f:call@2 -f:unwinding@2 +g:call@2 "
	  "-g:return@2 -JS:~run /s.js:1:1:return@1 -main:end@0" },
	{ "a script's function begins in better code", "1000:1C f000:1j>f100 f100:2r 1001:1o",
	  "+main:start@0 +JS:~run /s.js:1:1:call@1 -JS:~run /s.js:1:1:tail call@1 "
	  "+JS:^run /s.js:1:1:tail call@1 -JS:^run /s.js:1:1:return@1 -main:end@0" },
	{ "a script's function goes on in the interpreter",
	  "1000:1C f200:1C 2000:2r f305:1C 3000:1r f306:1r 1001:1o",
	  "+main:start@0 +JS:*run /s.js:2:1:call@1 +f:call@2 -f:unwinding@2 +g:call@2 "
	  "-g:return@2 -JS:*run /s.js:2:1:return@1 -main:end@0" },
	{ "the interpreter's function goes on in code of its own",
	  "1000:1C f300:1C 2000:2r f205:1C 3000:1r f206:1r 1001:1o",
	  "+main:start@0 +Builtins_InterpreterEntryTrampoline:call@1 +f:call@2 -f:unwinding@2 "
	  "+g:call@2 -g:return@2 -Builtins_InterpreterEntryTrampoline:return@1 -main:end@0" },
	{ "a script's function begins anew",
	  "1000:1C f100:1C f400:1C 2000:1r f401:1J f100:1C f400:1r f101:1C f400:2r f000:1r 1001:1o",
	  "+main:start@0 +JS:^run /s.js:1:1:call@1 +Builtin:BaselineOutOfLinePrologue:call@2 "
	  "+f:call@3 -f:return@3 -Builtin:BaselineOutOfLinePrologue:unwinding@2 "
	  "+Builtin:BaselineOutOfLinePrologue:call@2 -Builtin:BaselineOutOfLinePrologue:return@2 "
	  "+Builtin:BaselineOutOfLinePrologue:call@2 "
	  "-Builtin:BaselineOutOfLinePrologue:unwinding@2 -JS:^run /s.js:1:1:tail call@1 "
	  "+JS:~run /s.js:1:1:tail call@1 -JS:~run /s.js:1:1:return@1 -main:end@0" },
	{ "another function of the same name", "1000:1C f000:1J f205:2r 1001:1o",
	  "+main:start@0 +JS:~run /s.js:1:1:call@1 -JS:~run /s.js:1:1:tail call@1 "
	  "+JS:*run /s.js:2:1:tail call@1 -JS:*run /s.js:2:1:return@1 -main:end@0" },
	{ "a part without a name that is called", "1000:1C e200:2r 1001:1o",
	  "+main:start@0 +demo+0xe200.cold:call@1 -demo+0xe200.cold:return@1 -main:end@0" },
	{ "a stub of the PLT", "1000:1c>6000 6000:1J 4000:1r 1001:1o",
	  "+main:start@0 +h:call@1 -h:return@1 -main:end@0" },
	{ "a tail call through a stub", "1000:1C 2000:1j>6000 6000:1J 4000:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +h:tail call@1 -h:return@1 -main:end@0" },
	{ "lazy binding",
	  "1000:1c>6000 6000:1J 6002:3j>6020 6020:2J 7000:1C 3000:1r 7001:1J 4000:1r 1001:1o",
	  "+main:start@0 +resolve:call@1 +g:call@2 -g:return@2 -resolve:tail call@1 "
	  "+h:tail call@1 -h:return@1 -main:end@0" },
	{ "lazy binding, where the PLT's beginning has a symbol",
	  "1000:1c>6000 6000:1J 6002:3j>e000 e000:2J 7000:1J 4000:1r 1001:1o",
	  "+main:start@0 +resolve:call@1 -resolve:tail call@1 +h:tail call@1 -h:return@1 "
	  "-main:end@0" },
	{ "a signal in a stub",
	  "1000:1c>6000 6000:2o async@6002 3000:1r 8000:1s off 6002:1J 4000:1r 1001:1o",
	  "+main:start@0 +h@plt:call@1 +g:signal@2 -g:signal@2 -h@plt:tail call@1 +h:tail call@1 "
	  "-h:return@1 -main:end@0" },
	{ "a call of the next instruction", "1000:2c>1002 1002:1C 2000:1r 1003:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a call within a function, which returns", "1000:2c>1100 1100:1r 1002:1C 2000:1r 1003:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a call within a function, which calls", "1000:2c>1100 1100:1C 2000:1r 1101:1r 1002:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a call within a function, whose address is popped",
	  "1000:1C 2000:2c>2100 2100:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a retpoline", "1000:1c>a000 a000:1c>a004 a004:2r 3000:1r 1001:1o",
	  "+main:start@0 +g:call@1 -g:return@1 -main:end@0" },
	{ "a retpoline that is jumped to",
	  "1000:1C 2000:1j>a000 a000:1c>a004 a004:2r 3000:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:return@1 -main:end@0" },
	{ "a return thunk", "1000:1C 2000:1j>a100 a100:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a return thunk that calls within itself",
	  "1000:1C 2000:1j>a100 a100:1c>a108 a108:2r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a return thunk that fills the CPU's return stack",
	  "1000:1C 2000:1j>a300 a300:1c>a302 a302:1c>a304 a304:1c>a306 a306:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a return thunk, from below what is known", "2000:1j>a100 a100:1c>a108 a108:2r 1001:1o",
	  "+f:start@0 -f:return@0 +main:inference@-1 -main:end@-1" },
	{ "a thunk of a thunk", "1000:1c>a200 a200:1b>a1ff a202:1J 3000:1r 1001:1o",
	  "+main:start@0 +g:call@1 -g:return@1 -main:end@0" },
	{ "a retpoline into its own function",
	  "1000:1C 2000:1j>a000 a000:1c>a004 a004:2r 2100:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a retpoline into the lowest function", "2000:1j>a000 a000:1c>a004 a004:2r 2100:1o",
	  "+f:start@0 -f:end@0" },
	{ "a thunk into its own function", "1000:1C 2000:1j>a202 a202:1J 2100:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "an inline retpoline that calls",
	  "1000:1j>1010 1010:1c>1004 1004:1c>1008 1008:2r 3000:1r 1011:1o",
	  "+main:start@0 +g:call@1 -g:return@1 -main:end@0" },
	{ "an inline retpoline that jumps", "1000:1C 2000:1c>2008 2008:2r 3000:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:return@1 -main:end@0" },
	{ "an inline retpoline into its own function", "2000:1c>2008 2008:2r 2100:1o",
	  "+f:start@0 -f:end@0" },
	{ "an inline return thunk, from below what is known", "2000:1c>2008 2008:2r 1001:1o",
	  "+f:start@0 -f:return@0 +main:inference@-1 -main:end@-1" },
	{ "a uretprobe", "1000:1C 2000:1r a800:5s off a805:3r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a loop that fills the branch history",
	  "1000:1C a400:1c>a410 a410:1c>a420 a420:2b>a410 a410:1c>a420 a420:2b>a410 a422:1r "
	  "a411:1r a411:1r a401:1r 1001:1o",
	  "+main:start@0 +clear_bhb_loop:call@1 -clear_bhb_loop:return@1 -main:end@0" },
	{ "a function called by its padding", "1000:1c>a506 a506:10o a510:1r 1001:1o",
	  "+main:start@0 +g:call@1 -g:return@1 -main:end@0" },
	{ "a function called by its preamble", "1000:1C a600:1b>a610 a610:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a preamble that calls", "1000:1C a600:16c>a700 a700:2r a610:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a preamble that is jumped to", "1000:1C 3000:1j>a600 a600:16o a610:1r 1001:1o",
	  "+main:start@0 +g:call@1 -g:tail call@1 +f:tail call@1 -f:return@1 -main:end@0" },
	{ "a thunk and a preamble", "1000:1c>a202 a202:1J a600:16o a610:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "thunks of the kernel without a symbol",
	  "ffff800000001000:1c>ffffffffc0009000 ffffffffc0009000:1J ffff800000002000:1r "
	  "ffff800000001001:1c>ffffffffc0009100 ffffffffc0009100:1b>ffffffffc00090ff "
	  "ffffffffc0009102:1J ffff800000002000:1r ffff800000001002:1o",
	  "+entry:start@0 +work:call@1 -work:return@1 +work:call@1 -work:return@1 -entry:end@0" },
	{ "a thunk of the kernel without a symbol that is jumped to",
	  "ffff800000001000:1C ffff800000002000:1j>ffffffffc0009000 ffffffffc0009000:1J "
	  "ffff800000002010:1r ffff800000001001:1o",
	  "+entry:start@0 +work:call@1 -work:return@1 -entry:end@0" },
	{ "push and ret", "1000:1C 2000:2r 3000:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:return@1 -main:end@0" },
	{ "push and jmp, twice",
	  "1000:1C 2000:1j>3000 3000:1r 2003:1j>3000 3000:1r 2004:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:return@1 +f:reopening@1 "
	  "-f:tail call@1 +g:tail call@1 -g:return@1 +f:reopening@1 -f:return@1 -main:end@0" },
	{ "push and jmp, in the function of the first instruction",
	  "1000:1j>3000 3000:1r 1003:1J 3000:1r 1004:1o",
	  "+main:start@0 -main:tail call@0 +g:tail call@0 -g:return@0 +main:reopening@0 "
	  "-main:tail call@0 +g:tail call@0 -g:return@0 +main:reopening@0 -main:end@0" },
	{ "push and jmp in a function that was entered so",
	  "1000:1C 2000:1j>3000 3000:1j>4000 4000:1r 3003:1r 2003:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:tail call@1 +h:tail call@1 "
	  "-h:return@1 +g:reopening@1 -g:return@1 +f:reopening@1 -f:return@1 -main:end@0" },
	{ "a list of functions that return to each other",
	  "1000:1C 2000:1r 3000:1r 4000:1r 3000:1r 2003:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 -g:tail call@1 +h:tail call@1 "
	  "-h:tail call@1 +g:tail call@1 -g:return@1 +f:reopening@1 -f:return@1 -main:end@0" },
	{ "push and jmp, and a function inside returns",
	  "1000:1C 2000:1j>3000 3000:1C 4000:1r 2003:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 +h:call@2 -h:unwinding@2 "
	  "-g:return@1 +f:reopening@1 -f:return@1 -main:end@0" },
	{ "longjmp to a function that was left by a jump",
	  "1000:1C 2000:1j>3000 3000:1C 4000:1J 2003:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:tail call@1 +g:tail call@1 +h:call@2 -h:unwinding@2 "
	  "-g:return@1 +f:reopening@1 -f:return@1 -main:end@0" },
	{ "push and jmp in a recursion",
	  "1000:1C 2000:1C 2000:1j>3000 3000:1r 2007:1r 2001:1r 1001:1o",
	  "+main:start@0 +f:call@1 +f:call@2 -f:tail call@2 +g:tail call@2 -g:return@2 "
	  "+f:reopening@2? -f:return@2? -f:return@1 -main:end@0" },
	{ "push and jmp in a signal's handler",
	  "1000:2o async@1002 3000:1j>4000 4000:1r 3003:1r 8000:1s off 1002:1o",
	  "+main:start@0 +g:signal@1 -g:tail call@1 +h:tail call@1 -h:return@1 +g:reopening@1 "
	  "-g:signal@1 -main:end@0" },
	{ "a return to what nothing is known of, twice",
	  "1000:1C 2000:1r 3005:1C 2000:1r 4005:1r 3006:1o",
	  "+main:start@0 +f:call@1 -f:unwinding@1 -main:unwinding@0 +g:inference@-1 +f:call@0 "
	  "-f:gap@0 -g:gap@-1 +h:start@0 -h:return@0 +g:resumption@-1 -g:end@-1" },
	{ "push and jmp in code without symbols",
	  "1000:1C 9010:1C 9030:1r 9011:1J 9050:1J 9070:1r 9055:1r 1001:1o",
	  "+main:start@0 +stripped.so+0x9010:call@1 +stripped.so+0x9030:call@2 "
	  "-stripped.so+0x9030:return@2 -stripped.so+0x9010:return@1 -main:end@0" },
	{ "a call in code without symbols is left by a jump, and is made again",
	  "1000:1C 9010:2C 9030:1C 9040:1J 9011:1C 9030:1r 9012:1r 1001:1o",
	  "+main:start@0 +stripped.so+0x9010:call@1 +stripped.so+0x9030:call@2 "
	  "+stripped.so+0x9040:call@3 -stripped.so+0x9040:unwinding@3 "
	  "-stripped.so+0x9030:unwinding@2 +stripped.so+0x9030:call@2 "
	  "-stripped.so+0x9030:return@2 -stripped.so+0x9010:return@1 -main:end@0" },
	{ "the same call leads to a function with a symbol",
	  "1000:1C 9010:2C 9030:1C 9040:1J 9011:1C 2000:1r 9012:1r 1001:1o",
	  "+main:start@0 +stripped.so+0x9010:call@1 +stripped.so+0x9030:call@2 "
	  "+stripped.so+0x9040:call@3 -stripped.so+0x9040:unwinding@3 "
	  "-stripped.so+0x9030:unwinding@2 +f:call@2 -f:return@2 "
	  "-stripped.so+0x9010:return@1 -main:end@0" },
	{ "longjmp", "1000:1C 2000:1C 3000:1C 4000:1J 1005:1C 2000:2r 1006:1o",
	  "+main:start@0 +f:call@1 +g:call@2 +h:call@3 -h:unwinding@3 -g:unwinding@2 "
	  "-f:unwinding@1 +f:call@1 -f:return@1 -main:end@0" },
	{ "an exception that a cold part handles",
	  "1000:1C 2000:1C 3000:1C 4000:1r 5000:1j>2005 2005:1r 1001:1o",
	  "+main:start@0 +f:call@1 +g:call@2 +h:call@3 -h:unwinding@3 -g:unwinding@2 -f:return@1 "
	  "-main:end@0" },
	{ "an exception in a recursion: which activation handles it is decided later",
	  "1000:1C 2000:1C 2000:1C 2000:3C 3000:1r 2008:1r 1001:1o",
	  "+main:start@0 +f:call@1 +f:call@2 +f:call@3 +g:call@4 -g:unwinding@4 "
	  "-f:unwinding@3? -f:unwinding@2 -f:return@1 -main:end@0" },
	{ "a return past a frame", "1000:1C 2000:1C 3000:1r 1001:1o",
	  "+main:start@0 +f:call@1 +g:call@2 -g:unwinding@2 -f:return@1 -main:end@0" },
	{ "functions that were open before", "2000:1r 1001:1r 3001:1C 4000:1r 3002:1o",
	  "+f:start@0 -f:return@0 +main:inference@-1 -main:return@-1 +g:inference@-2 +h:call@-1 "
	  "-h:return@-1 -g:end@-2" },
	{ "a gap ends all", "1000:1C 2000:1C 3000:2o gap 4000:1o",
	  "+main:start@0 +f:call@1 +g:call@2 -g:gap@2 -f:gap@1 -main:gap@0 +h:start@0 -h:end@0" },
	{ "what was open before a gap goes on",
	  "1000:1C 2000:1C 3000:2o gap 3005:1r 2001:2r 1001:1o",
	  "+main:start@0 +f:call@1 +g:call@2 -g:gap@2 -f:gap@1 -main:gap@0 +g:start@0 "
	  "-g:return@0 +f:resumption@-1 -f:return@-1 +main:resumption@-2 -main:end@-2" },
	{ "a gap in which functions were left",
	  "1000:1C 2000:1C 3000:2o gap 4000:1r 2007:1r 1001:1o",
	  "+main:start@0 +f:call@1 +g:call@2 -g:gap@2 -f:gap@1 -main:gap@0 +h:start@0 "
	  "-h:return@0 +f:inference@-1 -f:return@-1 +main:resumption@-2 -main:end@-2" },
	{ "a system call", "1000:1C 2000:1s off 2001:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a system call that is restarted",
	  "1000:1C 2000:2o 2002:2s off 2002:2s off 2004:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "an interruption", "1000:2o async@1002 1002:1C 2000:1r 1003:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "an interruption between a call and the function",
	  "1000:1C async@2000 slice 2000:1r 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
	{ "a signal", "1000:2o async@1002 3000:1C 2000:1r 3001:1r 8000:1s off 1002:1o",
	  "+main:start@0 +g:signal@1 +f:call@2 -f:return@2 -g:signal@1 -main:end@0" },
	{ "a signal between a call and the function",
	  "1000:1C async@2000 3000:1r 8000:1s off 2000:1r 1001:1o",
	  "+main:start@0 +g:signal@1 -g:signal@1 +f:call@1 -f:return@1 -main:end@0" },
	{ "a signal between a return and the function",
	  "1000:1C 2000:1r async@1001 3000:1r 8000:1s off 1001:1o",
	  "+main:start@0 +f:call@1 +g:signal@2 -g:signal@2 -f:return@1 -main:end@0" },
	{ "a signal in a system call", "1000:2s off 3000:1r 8000:1s off 1002:1o",
	  "+main:start@0 +g:signal@1 -g:signal@1 -main:end@0" },
	{ "a signal in a system call that is restarted",
	  "1000:2s off 3000:1r 8000:1s off 1000:2s off 1002:1o",
	  "+main:start@0 +g:signal@1 -g:signal@1 -main:end@0" },
	{ "nested signals",
	  "1000:2o async@1002 3000:1o async@3001 4000:1r 8000:1s off 3001:1r 8000:1s off 1002:1o",
	  "+main:start@0 +g:signal@1 +h:signal@2 -h:signal@2 -g:signal@1 -main:end@0" },
	{ "a signal that waits until the handler of another one has ended",
	  "1000:2o async@1002 3000:1r 8000:1s off 3000:1r 8000:1s off 1002:1o",
	  "+main:start@0 +g:signal@1 -g:signal@1 +g:signal@1 -g:signal@1 -main:end@0" },
	{ "one that waits so, with another handler",
	  "1000:2s off 3000:1r 8000:1s off 4000:1r 8000:1s off 1002:1o",
	  "+main:start@0 +g:signal@1 -g:signal@1 +h:call@1 -h:signal@1 -main:end@0" },
	{ "siglongjmp", "1000:1C 2000:2o async@2002 3000:1C 4000:1J 1005:1o",
	  "+main:start@0 +f:call@1 +g:signal@2 +h:call@3 -h:unwinding@3 -g:unwinding@2 "
	  "-f:unwinding@1 -main:end@0" },
	{ "a handler that makes the thread call",
	  "1000:2o async@1002 3000:1r 8000:1s off 4000:1r 1002:1o",
	  "+main:start@0 +g:signal@1 -g:signal@1 +h:call@1 -h:return@1 -main:end@0" },
	{ "a handler that makes the thread go on elsewhere",
	  "1000:1C 2000:2o async@2002 3000:1r 8000:1s off 1007:1o",
	  "+main:start@0 +f:call@1 +g:signal@2 -g:signal@2 -f:unwinding@1 -main:end@0" },
	{ "the kernel, by a system call",
	  "1000:2s ffff800000001000:1C ffff800000002000:1r ffff800000001001:1R 1002:1o",
	  "+main:start@0 +entry:system call@1 +work:call@2 -work:return@2 -entry:system call@1 "
	  "-main:end@0" },
	{ "the kernel, by an interrupt, between a call and the function",
	  "1000:1C async@2000 ffff800000001000:1R 2000:1r 1001:1o",
	  "+main:start@0 +entry:interrupt@1 -entry:interrupt@1 +f:call@1 -f:return@1 -main:end@0" },
	{ "the kernel delivers a signal",
	  "1000:2s ffff800000001000:1R 3000:1r 8000:1s ffff800000001000:1R 1002:1o",
	  "+main:start@0 +entry:system call@1 -entry:system call@1 +g:signal@1 "
	  "+entry:system call@2 -entry:system call@2 -g:signal@1 -main:end@0" },
	{ "the kernel first", "ffff800000001000:1R 1001:1C 2000:1r 1002:1o",
	  "+entry:start@0 -entry:return@0 +main:inference@-1 +f:call@0 -f:return@0 -main:end@-1" },
	{ "code without symbols, by its calls",
	  "1000:1C 9010:2C 9020:2b>9030 9030:2j>9021 9021:1r 9012:1r 1001:1C 9010:2C 9020:2b>9030 "
	  "9022:1r 9012:1r 1002:1o",
	  "+main:start@0 +stripped.so+0x9010:call@1 +stripped.so+0x9020:call@2 "
	  "-stripped.so+0x9020:return@2 -stripped.so+0x9010:return@1 "
	  "+stripped.so+0x9010:call@1 +stripped.so+0x9020:call@2 "
	  "-stripped.so+0x9020:return@2 -stripped.so+0x9010:return@1 -main:end@0" },
	{ "a tail call to code without a symbol that was called before",
	  "1000:1C 9010:1r 1001:1C 9020:1j>9010 9010:1r 1002:1o",
	  "+main:start@0 +stripped.so+0x9010:call@1 -stripped.so+0x9010:return@1 "
	  "+stripped.so+0x9020:call@1 -stripped.so+0x9020:tail call@1 "
	  "+stripped.so+0x9010:tail call@1 -stripped.so+0x9010:return@1 -main:end@0" },
	{ "threads",
	  "1000:1C tid12 3000:1C tid11 2000:1r tid12 4000:1r tid11 1001:1o tid12 3001:1o",
	  "+main:start@0 +g:start@0 +f:call@1 +h:call@1 -f:return@1 -h:return@1 -main:end@0 "
	  "-g:end@0" },
	{ "a new program", "1000:1C 2000:1s off space2 3000:1o",
	  "+main:start@0 +f:call@1 -f:end@1 -main:end@0 +g:start@0 -g:end@0" },
	{ "a slice that does not go on where the last one was",
	  "1000:1C 2000:2o slice 2001:1o 2002:1o",
	  "+main:start@0 +f:call@1 -f:gap@1 -main:gap@0 +f:start@0 -f:end@0" },
	{ "a fiber, there and back",
	  "1000:1c>c000 c000:2r 2000:1c>c000 c000:2r 1001:1c>c000 c000:2r 2001:1r c100:1c>c200 "
	  "c200:2r 1002:1o",
	  "+main:start@0 +__swapcontext:call@1 =1 +f:start@0 +__swapcontext:call@1 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =1 -__swapcontext:return@1 -f:return@0 "
	  "+__start_context:start@0 +setcontext:call@1 -setcontext:end@1 -__start_context:end@0 "
	  "=0 -__swapcontext:return@1 -main:end@0" },
	{ "fibers that wait at the same address: which goes on, its return shows",
	  "1000:1c>c000 c000:2r 2000:1c>3000 3000:1c>c000 c000:2r 1001:1c>c000 c000:2r "
	  "4000:1c>3000 3000:1c>c000 c000:2r 1002:1c>c000 c000:2r 3001:1r 4001:1c>3000 "
	  "3000:1c>c000 c000:2r 1003:1c>c000 c000:2r 3001:1r 2001:1o",
	  "+main:start@0 +__swapcontext:call@1 =1 +f:start@0 +g:call@1 +__swapcontext:call@2 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =2 +h:start@0 +g:call@1 "
	  "+__swapcontext:call@2 =0 -__swapcontext:return@1 +__swapcontext:call@1 =1? "
	  "-__swapcontext:return@2? =2(1) -g:return@1 +g:call@1 +__swapcontext:call@2 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =1? -__swapcontext:return@2? "
	  "-g:return@1 -f:end@0 -__swapcontext:end@1 -main:end@0 -__swapcontext:end@2 -g:end@1 "
	  "-h:end@0" },
	{ "fibers that wait at the same address, in other depths",
	  "1000:1c>c000 c000:2r 2000:1c>3000 3000:1c>c000 c000:2r 1001:1c>c000 c000:2r "
	  "4000:1c>b000 b000:1c>3000 3000:1c>c000 c000:2r 1002:1c>c000 c000:2r 3001:1r "
	  "b001:1c>3000 3000:1c>c000 c000:2r 1003:1c>c000 c000:2r 3001:1r 2001:1c>4000 4000:1r "
	  "2002:1o",
	  "+main:start@0 +__swapcontext:call@1 =1 +f:start@0 +g:call@1 +__swapcontext:call@2 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =2 +h:start@0 "
	  "+(anonymous namespace)::k(int):call@1 +g:call@2 +__swapcontext:call@3 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =1? -__swapcontext:return@2? =2(1) "
	  "-g:return@2 +g:call@2 +__swapcontext:call@3 =0 -__swapcontext:return@1 "
	  "+__swapcontext:call@1 =1? -__swapcontext:return@2? -g:return@1 +h:call@1 -h:return@1 "
	  "-f:end@0 -__swapcontext:end@1 -main:end@0 -__swapcontext:end@3 -g:end@2 "
	  "-(anonymous namespace)::k(int):end@1 -h:end@0" },
	{ "three fibers that change places in a circle",
	  "1000:1c>c000 c000:2r 2000:1c>3000 3000:1c>c000 c000:2r 1001:1c>c000 c000:2r "
	  "4000:1c>3000 3000:1c>c000 c000:2r 1002:1c>c000 c000:2r b000:1c>3000 3000:1c>c000 "
	  "c000:2r 1003:1c>c000 c000:2r 3001:1c>c000 c000:2r 1004:1c>c000 c000:2r 3001:2c>c000 "
	  "c000:2r 1005:1c>c000 c000:2r 3001:1r 2001:1c>c000 c000:2r 1006:1c>c000 c000:2r 3003:1r "
	  "b001:1c>c000 c000:2r 1007:1c>c000 c000:2r 3002:1r 4001:1o",
	  "+main:start@0 +__swapcontext:call@1 =1 +f:start@0 +g:call@1 +__swapcontext:call@2 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =2 +h:start@0 +g:call@1 "
	  "+__swapcontext:call@2 =0 -__swapcontext:return@1 +__swapcontext:call@1 =3 "
	  "+(anonymous namespace)::k(int):start@0 +g:call@1 +__swapcontext:call@2 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =1? -__swapcontext:return@2? "
	  "+__swapcontext:call@2? =0 -__swapcontext:return@1 +__swapcontext:call@1 =2? "
	  "-__swapcontext:return@2? +__swapcontext:call@2? =0 -__swapcontext:return@1 "
	  "+__swapcontext:call@1 =3? -__swapcontext:return@2? =1(1)? -g:return@1 "
	  "+__swapcontext:call@1 =0 -__swapcontext:return@1 +__swapcontext:call@1 =2? "
	  "-__swapcontext:return@2? =3(1) -g:return@1 +__swapcontext:call@1 =0 "
	  "-__swapcontext:return@1 +__swapcontext:call@1 =2 -__swapcontext:return@2? "
	  "-g:return@1 -h:end@0 -__swapcontext:end@1 -main:end@0 -__swapcontext:end@1 "
	  "-(anonymous namespace)::k(int):end@0 -__swapcontext:end@1 -f:end@0" },
	{ "a fiber that is seen first in its middle", "1000:1c>c000 c000:2r 2005:1r 3005:1o",
	  "+main:start@0 +__swapcontext:call@1 =1 +f:start@0 -f:return@0 +g:inference@-1 "
	  "-g:end@-1 -__swapcontext:end@1 -main:end@0" },
	{ "a function whose name does not say that it changes stacks",
	  "1000:1c>4000 4000:2r 2000:1c>4000 4000:2r 1001:1c>4000 4000:2r 2001:1c>4000 4000:2r "
	  "1002:1c>4000 4000:2r 2002:1o",
	  "+main:start@0 +h:call@1 -h:tail call@1 +f:tail call@1 +h:call@2 -h:unwinding@2 "
	  "-f:return@1 +h:call@1 =1 +f:start@0 +h:call@1 =0 -h:return@1 +h:call@1 =1 "
	  "-h:return@1 -f:end@0 -h:end@1 -main:end@0" },
	{ "one that jumps",
	  "1000:1c>4000 4000:2J 2000:1c>4000 4000:2J 1001:1c>4000 4000:2J 2001:1c>4000 4000:2J "
	  "1002:1c>4000 4000:2J 2002:1o",
	  "+main:start@0 +h:call@1 -h:tail call@1 +f:tail call@1 +h:call@2 -h:unwinding@2 "
	  "-f:return@1 +h:call@1 =1 +f:start@0 +h:call@1 =0 -h:return@1 +h:call@1 =1 "
	  "-h:return@1 -f:end@0 -h:end@1 -main:end@0" },
	{ "goroutines: one begins, waits and goes on",
	  "1000:1c>d100 d100:1j>d200 d200:1J 2000:1c>d000 d000:1C 3000:1c>d100 d100:1j>d200 "
	  "d200:1J 2001:1c>4000 4000:1r 2002:1o",
	  "+main:start@0 +runtime.gogo.abi0:call@1 -runtime.gogo.abi0:tail call@1 "
	  "+gogo:tail call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 "
	  "+runtime.mcall:call@1 =0 +g:call@0 +runtime.gogo.abi0:call@1 "
	  "-runtime.gogo.abi0:tail call@1 +gogo:tail call@1 -gogo:unwinding@1 -g:unwinding@0 =1 "
	  "-runtime.mcall:return@1 +h:call@1 -h:return@1 -f:end@0" },
	{ "a goroutine's stack grows, and its function begins again",
	  "1000:1c>d200 d200:1J 2000:1c>3000 3000:1b>3008 3008:1c>d300 d300:1j>d400 d400:1c>4000 "
	  "4000:1c>d200 d200:1J 3009:1j>3000 3000:1b>3008 3001:1r 2001:1o",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 +g:call@1 "
	  "+runtime.morestack_noctxt.abi0:call@2 -runtime.morestack_noctxt.abi0:tail call@2 "
	  "+runtime.morestack.abi0:tail call@2 =0 +h:call@0 +gogo:call@1 -gogo:unwinding@1 "
	  "-h:unwinding@0 =1 -runtime.morestack.abi0:return@2 -g:return@1 -f:end@0" },
	{ "a goroutine's stack grows while another one waits for the same",
	  "1000:1c>d200 d200:1J 2000:1c>3000 3000:1b>3008 3008:1c>d300 d300:1j>d400 d400:1c>4000 "
	  "4000:1c>b000 b000:1c>d200 d200:1J 2000:1c>3000 3000:1b>3008 3008:1c>d300 d300:1j>d400 "
	  "d400:1c>4000 4000:1c>d200 d200:1J 3009:1j>3000 3000:1b>3008 3001:1r 2001:1o",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 +g:call@1 "
	  "+runtime.morestack_noctxt.abi0:call@2 -runtime.morestack_noctxt.abi0:tail call@2 "
	  "+runtime.morestack.abi0:tail call@2 =0 +h:call@0 +(anonymous namespace)::k(int):call@1 "
	  "+gogo:call@2 -gogo:unwinding@2 -(anonymous namespace)::k(int):unwinding@1 "
	  "-h:unwinding@0 =2 +f:start@0 +g:call@1 +runtime.morestack_noctxt.abi0:call@2 "
	  "-runtime.morestack_noctxt.abi0:tail call@2 +runtime.morestack.abi0:tail call@2 =0 "
	  "+h:call@0 +gogo:call@1 -gogo:unwinding@1 -h:unwinding@0 =2 "
	  "-runtime.morestack.abi0:return@2 -g:return@1 -f:end@0 "
	  "-runtime.morestack.abi0:end@2 -g:end@1 -f:end@0" },
	{ "a coroutine lets the other one go on, which waits for the same",
	  "1000:1c>d200 d200:1J 2000:1c>4000 4000:1c>d000 d000:1C b000:1c>d200 d200:1J "
	  "3000:1c>4000 4000:1c>d000 d000:1C b000:1c>d200 d200:1J 4001:1r 2001:1o",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 "
	  "+h:call@1 +runtime.mcall:call@2 =0 +(anonymous namespace)::k(int):call@0 "
	  "+gogo:call@1 -gogo:unwinding@1 -(anonymous namespace)::k(int):unwinding@0 =2 "
	  "+g:start@0 +h:call@1 +runtime.mcall:call@2 =0 +(anonymous "
	  "namespace)::k(int):call@0 +gogo:call@1 -gogo:unwinding@1 -(anonymous "
	  "namespace)::k(int):unwinding@0 =1? -runtime.mcall:return@2? -h:return@1 "
	  "-f:end@0 -runtime.mcall:end@2 -h:end@1 -g:end@0" },
	{ "a goroutine that has ended does not go on",
	  "1000:1c>d200 d200:1J 2000:1c>d000 d000:1C d500:1c>d200 d200:1J 2001:1o",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 "
	  "+runtime.mcall:call@1 -runtime.mcall:end@1 -f:end@0 =0 +runtime.goexit0:call@0 "
	  "+gogo:call@1 -gogo:unwinding@1 -runtime.goexit0:unwinding@0 =2 +f:start@0 -f:end@0" },
	{ "a goroutine recovers from a panic",
	  "1000:1c>d200 d200:1J 2000:1c>3000 3000:1c>4000 4000:1c>d000 d000:1C b000:1c>d200 "
	  "d200:1J 2006:1r",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 +g:call@1 "
	  "+h:call@2 +runtime.mcall:call@3 =0 +(anonymous namespace)::k(int):call@0 +gogo:call@1 "
	  "-gogo:unwinding@1 -(anonymous namespace)::k(int):unwinding@0 =1 "
	  "-runtime.mcall:unwinding@3 -h:unwinding@2 -g:unwinding@1 -f:end@0" },
	{ "a goroutine goes on in a function that is open in the one parked last, too",
	  "1000:1c>d200 d200:1J 2000:1c>3000 3000:1c>4000 4000:1c>d000 d000:1C b000:1c>7000 "
	  "7000:1c>d200 d200:1J 2006:1r",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 +g:call@1 "
	  "+h:call@2 +runtime.mcall:call@3 =0 +(anonymous namespace)::k(int):call@0 "
	  "+resolve:call@1 +gogo:call@2 -gogo:unwinding@2 -resolve:unwinding@1 -(anonymous "
	  "namespace)::k(int):unwinding@0 =2 +f:start@0 -f:end@0 -runtime.mcall:end@3 -h:end@2 "
	  "-g:end@1 -f:end@0" },
	{ "a goroutine that goes on in another thread, before it is seen to wait",
	  "tid12 t1000 1000:1c>d200 d200:1J 4006:1r 3001:1r 2001:1o tid11 t100 1000:1c>d200 "
	  "d200:1J 2000:1c>3000 3000:1c>4000 4000:6c>d000 d000:1C b000:1o",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +h:start@0 "
	  "-h:return@0 +g:inference@-1? -g:return@-1? +f:inference@-2? +main:start@0 "
	  "+gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =3 +f:start@0 +g:call@1 "
	  "+h:call@2 +runtime.mcall:call@3 -runtime.mcall:end@3 -h:end@2 -g:end@1 "
	  "-f:end@0 =2 +(anonymous namespace)::k(int):call@0 -f:end@-2? -(anonymous "
	  "namespace)::k(int):end@0" },
	{ "one that is taken for another one, which is seen to wait later",
	  "tid11 t100 1000:1c>d200 d200:1J 2000:1c>3000 3000:1c>d000 d000:1C b000:1o tid12 t1000 "
	  "1000:1c>d200 d200:1J 3001:1r 4001:1o tid13 t500 1000:1c>d200 d200:1J 4000:1c>3000 "
	  "3000:1c>d000 d000:1C b000:1o tid11 t2000 b001:1c>d200 d200:1J 3001:1r 2001:1o",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 "
	  "+g:call@1 +runtime.mcall:call@2 =0 +(anonymous namespace)::k(int):call@0 "
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1? "
	  "-runtime.mcall:return@2? =3 +g:start@0 -g:return@0 +h:inference@-1? "
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =5 +h:start@0 "
	  "+g:call@1 +runtime.mcall:call@2 -runtime.mcall:end@2 -g:end@1 -h:end@0 =4 "
	  "+(anonymous namespace)::k(int):call@0 +gogo:call@1 -gogo:unwinding@1 "
	  "-(anonymous namespace)::k(int):unwinding@0 =6 +g:start@0 -g:return@0 =1? "
	  "-g:end@1? -f:end@0? -h:end@-1? -(anonymous namespace)::k(int):end@0" },
	{ "one that was taken for another one goes on itself, or one that waits for the same",
	  "1000:1c>d200 d200:1J 2000:1c>3000 3000:1c>d000 d000:1C b000:1c>7000 7000:1c>d200 "
	  "d200:1J 3001:1r 4001:1c>d000 d000:1C b000:1c>7000 7000:1c>d200 d200:1J 3001:1r 2001:1o",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 "
	  "+g:call@1 +runtime.mcall:call@2 =0 +(anonymous namespace)::k(int):call@0 "
	  "+resolve:call@1 +gogo:call@2 -gogo:unwinding@2 -resolve:unwinding@1 -(anonymous "
	  "namespace)::k(int):unwinding@0 =1 -runtime.mcall:return@2 =2 +g:start@0 "
	  "-g:return@0 +h:inference@-1? +runtime.mcall:call@0 =0 +(anonymous "
	  "namespace)::k(int):call@0 +resolve:call@1 +gogo:call@2 -gogo:unwinding@2 "
	  "-resolve:unwinding@1 -(anonymous namespace)::k(int):unwinding@0 =3 +g:start@0 "
	  "-g:return@0 =1? -g:end@1? -f:end@0? -runtime.mcall:end@0 -h:end@-1?" },
	{ "of two goroutines each was taken for the other one twice",
	  "1000:1c>d200 d200:1J 2000:1j>2006 2006:1c>3000 3000:1j>3002 3002:1c>2000 2000:1j>2004 "
	  "2004:1c>d000 d000:1C b000:1c>7000 7000:1c>d200 d200:1J 2000:1j>2004 2004:1c>d000 "
	  "d000:1C b000:1c>7000 7000:1c>d200 d200:1J 2005:1j>2002 2002:1c>2000 2000:1j>2002 "
	  "2002:1c>d000 d000:1C b000:1c>7000 7000:1c>d200 d200:1J 2005:1j>2002 2002:1c>d000 "
	  "d000:1C b000:1c>7000 7000:1c>d200 d200:1J 2003:1j>2006 2006:1c>d000 d000:1C "
	  "b000:1c>7000 7000:1c>d200 d200:1J 2007:1j>2020 2020:1r 3003:1j>3004",
	  "+main:start@0 +gogo:call@1 -gogo:unwinding@1 -main:unwinding@0 =1 +f:start@0 "
	  "+g:call@1 +f:call@2 +runtime.mcall:call@3 =0 +(anonymous namespace)::k(int):call@0 "
	  "+resolve:call@1 +gogo:call@2 -gogo:unwinding@2 -resolve:unwinding@1 -(anonymous "
	  "namespace)::k(int):unwinding@0 =2 +f:start@0 +runtime.mcall:call@1 =0 +(anonymous "
	  "namespace)::k(int):call@0 +resolve:call@1 +gogo:call@2 -gogo:unwinding@2 "
	  "-resolve:unwinding@1 -(anonymous namespace)::k(int):unwinding@0 =1? "
	  "-runtime.mcall:return@3? +f:call@3? +runtime.mcall:call@4? =0 +(anonymous "
	  "namespace)::k(int):call@0 +resolve:call@1 +gogo:call@2 -gogo:unwinding@2 "
	  "-resolve:unwinding@1 -(anonymous namespace)::k(int):unwinding@0 =2? "
	  "-runtime.mcall:return@1? +runtime.mcall:call@1? =0 +(anonymous "
	  "namespace)::k(int):call@0 +resolve:call@1 +gogo:call@2 -gogo:unwinding@2 "
	  "-resolve:unwinding@1 -(anonymous namespace)::k(int):unwinding@0 =1? "
	  "-runtime.mcall:return@4? +runtime.mcall:call@4? =0 +(anonymous "
	  "namespace)::k(int):call@0 +resolve:call@1 +gogo:call@2 -gogo:unwinding@2 "
	  "-resolve:unwinding@1 -(anonymous namespace)::k(int):unwinding@0 =1? "
	  "-runtime.mcall:return@4? =2(1)? =1(2) -f:return@2 -g:end@1 -f:end@0 "
	  "-runtime.mcall:end@2? -f:end@1? -f:end@0" },
	{ "a scheduler's stack that waits is not the scheduler's any more",
	  "1000:1c>d000 d000:1C 2000:1c>c000 c000:2r 3000:1c>d000 d000:1C 4000:1c>c200 c200:2r "
	  "2001:1o",
	  "+main:start@0 +runtime.mcall:call@1 =1 +f:call@0 +__swapcontext:call@1 =2 +g:start@0 "
	  "+runtime.mcall:call@1 =3 +h:call@0 +setcontext:call@1 -setcontext:end@1 -h:end@0 =1 "
	  "-__swapcontext:return@1 -f:end@0 -runtime.mcall:end@1 -g:end@0 -runtime.mcall:end@1 "
	  "-main:end@0" },
	{ "a scheduler's stack that has ended is not the scheduler's any more",
	  "1000:1c>d000 d000:1C 2000:1c>c200 c200:2r 1001:1c>d000 d000:1C 3000:1c>c200 c200:2r "
	  "1002:1o",
	  "+main:start@0 +runtime.mcall:call@1 =1 +f:call@0 +setcontext:call@1 -setcontext:end@1 "
	  "-f:end@0 =0 -runtime.mcall:return@1 +runtime.mcall:call@1 =2 +g:call@0 "
	  "+setcontext:call@1 -setcontext:end@1 -g:end@0 =0 -runtime.mcall:return@1 -main:end@0" },
	{ "a function is called again at once when it turned out to change between stacks",
	  "1000:1C 4000:1C 3000:1o 3001:1r 1001:5C 2000:1C 3000:1o 3001:1r 4001:6C 3000:1o 3001:1J "
	  "7000:1o",
	  "+main:start@0 +h:call@1 +g:call@2 -g:unwinding@2 -h:return@1 +f:call@1 +g:call@2 =1 "
	  "+h:start@0 +g:call@1 =2 +resolve:start@0 -resolve:end@0 -g:end@1 -h:end@0 -g:end@2 "
	  "-f:end@1 -main:end@0" },
	{ "part of a block", "1000:1C 2000:4r+1 1001:1o",
	  "+main:start@0 +f:call@1 -f:return@1 -main:end@0" },
};

/* What a stream gives does not depend on how it is cut into batches. */
static void test_rules(void **state)
{
	bool bad = false;

	for (size_t i = 0; i < 2 * ARRAY_LEN(streams); i++) {
		const char *stream = streams[i / 2].stream, *calls = streams[i / 2].calls;
		struct fixture *f;

		(void)teardown(state);
		assert_int_equal(setup(state), 0);
		f = *state;
		f->is_cut = i % 2 != 0;
		run_stream(f, stream);
		if (strcmp(f->text, calls) == 0)
			continue;
		bad = true;
		print_error("%s%s:\n  %s\ngives\n  %s\nnot\n  %s\n", streams[i / 2].what,
			    f->is_cut ? ", run by run" : "", stream, f->text, calls);
	}
	assert_false(bad);
}

#define FIBERS 120

/*
 * Many fibers wait at the same address. Which goes on is not known until they return, so they
 * change places, and what is known of each of the others is full.
 */
static void test_many_fibers(void **state)
{
	struct fixture *f = *state;
	char word[32];
	uint32_t random = 1;

	f->is_quiet = true;
	for (size_t i = 0; i < 6000; i++) {
		random = random * 1103515245 + 12345;
		take_word(f, "1000:1c>c000");
		take_word(f, "c000:2r");
		if (i >= FIBERS) {
			/* One of 8 returns from one or two functions, and calls them again. */
			(void)snprintf(word, sizeof(word), "%x:1r", 0x3001 + (random >> 16 & 2));
			take_word(f, word);
			(void)snprintf(word, sizeof(word), "%x:1j>2000",
				       0x2001 + (random >> 20 & 6));
			take_word(f, word);
		}
		(void)snprintf(word, sizeof(word), "%x:1c>3000", 0x2000 + (random >> 24 & 6));
		take_word(f, word);
		(void)snprintf(word, sizeof(word), "%x:1c>c000", 0x3000 + (random >> 28 & 2));
		take_word(f, word);
		take_word(f, "c000:2r");
		take_word(f, "1001:1j>1000");
		give_batch(f);
	}
	assert_int_equal(ptd_calls_finish(f->calls), 0);
	take_calls(f);
	callcheck_end(&f->check);
	assert_int_equal(f->check.n_faults, 0);
	assert_true(ptd_calls_stats(f->calls)->n_wrong > 100);
}

/* --- goroutines ------------------------------------------------------------------------------- */

#define GOROUTINES      2
#define GOROUTINE_DEPTH 24
#define GOROUTINE_SITES 10
#define GOROUTINE_STEPS 4000
#define GOROUTINE_SEEDS 4

/* What a goroutine truly is in the middle of. */
struct goroutine {
	uint64_t ip;
	uint64_t rets[GOROUTINE_DEPTH]; /* where each function but the first one returns to */
	size_t n;
};

struct goroutines {
	struct fixture *f;
	struct goroutine all[GOROUTINES];
	uint32_t random;
	size_t n_returns;
};

static uint32_t draw(struct goroutines *g, uint32_t n)
{
	g->random = g->random * 1103515245 + 12345;
	return (g->random >> 12) % n;
}

__attribute__((format(printf, 2, 3))) static void say_word(struct goroutines *g, const char *format,
							   ...)
{
	char word[48];
	va_list list;

	va_start(list, format);
	(void)vsnprintf(word, sizeof(word), format, list);
	va_end(list);
	take_word(g->f, word);
	if (g->f->batch.n_runs > RUNS - 8)
		give_batch(g->f);
}

/* The goroutine jumps to a place in its function that calls @target. */
static void call_from(struct goroutines *g, struct goroutine *own, uint64_t target)
{
	const uint64_t from = (own->ip & ~UINT64_C(0xfff)) + 2 * draw(g, GOROUTINE_SITES) + 2;

	say_word(g, "%" PRIx64 ":1j>%" PRIx64, own->ip, from);
	say_word(g, "%" PRIx64 ":1c>%" PRIx64, from, target);
	own->ip = from + 1;
}

static void call_function(struct goroutines *g, struct goroutine *own)
{
	const uint64_t target = UINT64_C(0x2000) + 0x1000 * draw(g, 3);

	call_from(g, own, target);
	own->rets[own->n++] = own->ip;
	own->ip = target;
}

static void return_from(struct goroutines *g, struct goroutine *own)
{
	say_word(g, "%" PRIx64 ":1j>%" PRIx64, own->ip, (own->ip & ~UINT64_C(0xfff)) + 0x20);
	say_word(g, "%" PRIx64 ":1r", (own->ip & ~UINT64_C(0xfff)) + 0x20);
	own->ip = own->rets[--own->n];
	g->n_returns++;
}

/* Some calls and returns; then the goroutine waits, or ends: then another one begins. */
static void go_on(struct goroutines *g, struct goroutine *own)
{
	for (size_t i = draw(g, 6); i > 0; i--) {
		if (own->n + 1 < GOROUTINE_DEPTH && (own->n == 0 || draw(g, 2)))
			call_function(g, own);
		else
			return_from(g, own);
	}
	call_from(g, own, 0xd000);
	say_word(g, "d000:1C");
	if (own->n == 0 && draw(g, 4) == 0) {
		say_word(g, "d500:1c>7000");
		*own = (struct goroutine){ .ip = 0x2000 };
	} else {
		say_word(g, "b000:1c>7000");
	}
	say_word(g, "7000:1c>d200");
	say_word(g, "d200:1J");
}

/*
 * Goroutines that wait at few addresses, of one thread, all seen from their beginning: whichever
 * goes on, each return leaves the innermost function, nothing is unwound, and nothing inferred.
 */
static void test_goroutines(void **state)
{
	for (uint32_t seed = 0; seed < GOROUTINE_SEEDS; seed++) {
		struct goroutines g = { .random = seed };
		const struct ptd_calls_stats *stats;

		(void)teardown(state);
		assert_int_equal(setup(state), 0);
		g.f = *state;
		g.f->is_quiet = true;
		say_word(&g, "1000:1c>d200");
		say_word(&g, "d200:1J");
		for (size_t i = 0; i < GOROUTINES; i++)
			g.all[i] = (struct goroutine){ .ip = 0x2000 };
		for (size_t i = 0; i < GOROUTINE_STEPS; i++)
			go_on(&g, &g.all[draw(&g, GOROUTINES)]);
		give_batch(g.f);
		assert_int_equal(ptd_calls_finish(g.f->calls), 0);
		take_calls(g.f);
		callcheck_end(&g.f->check);
		assert_int_equal(g.f->check.n_faults, 0);
		stats = ptd_calls_stats(g.f->calls);
		/* Which one goes on is not always found out: some wrong choices show too late. */
		assert_true(stats->n_entered[PTD_CALL_BY_INFERENCE] * 100 < g.n_returns);
	}
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* A thread without what surrounds it. */
struct alone {
	struct call_world world;
	struct stackpool pool;
	struct callthread thread;
};

static void alone_init(struct alone *a, const struct fixture *f)
{
	*a = (struct alone){};
	assert_int_equal(callthread_init(&a->thread, &a->world, &a->pool, &f->slice), 0);
}

static void alone_give(struct alone *a, struct fixture *f)
{
	struct call_position at = {};

	callthread_begin(&a->thread, &f->batch);
	while (!callthread_has_taken(&f->batch, &at)) {
		assert_int_equal(callthread_take(&a->thread, &a->world, &f->batch, &at), 0);
		a->world.list.calls.n = 0;
	}
	f->batch.n_runs = f->batch.n_marks = 0;
}

static void alone_deinit(struct alone *a)
{
	assert_int_equal(callthread_end(&a->thread, &a->world), 0);
	callthread_forget(&a->thread, &a->world);
	assert_int_equal(a->world.list.n_frames, 0);
	stackpool_deinit(&a->pool);
	call_world_deinit(&a->world);
}

/* A stack that becomes the scheduler's takes the place of the one that was. */
static void test_schedulers(void **state)
{
	static const char *const words[] = { "3000:1c>d000", "d000:1C",      "2000:1c>d200",
					     "d200:1J",      "3001:1c>d200", "d200:1J" };
	struct fixture *f = *state;
	struct alone a;
	size_t n = 0;

	alone_init(&a, f);
	for (size_t i = 0; i < 20; i++)
		for (size_t k = 0; k < ARRAY_LEN(words); k++)
			take_word(f, words[k]);
	alone_give(&a, f);
	for (const struct callstack *stack = a.world.stacks; stack; stack = stack->next)
		n++;
	assert_in_range(n, 1, 4);
	alone_deinit(&a);
}

/* To hide one frame more does not move all that are hidden, each time. */
static void test_gaps(void **state)
{
	struct fixture *f = *state;
	size_t n_hidden = 0, n_moved = 0;
	struct alone a;

	alone_init(&a, f);
	for (size_t i = 0; i < 20000; i++) {
		take_word(f, "1000:1o");
		take_word(f, "gap");
		alone_give(&a, f);
		n_moved += a.thread.stack->hidden.n <= n_hidden;
		n_hidden = a.thread.stack->hidden.n;
	}
	assert_in_range(n_hidden, 1000, 19000);
	assert_in_range(n_moved, 1, 10);
	alone_deinit(&a);
}

/* Code that only installs handlers of exceptions. */
static void test_traps(void **state)
{
	/* lea, push %r11, push %r14, mov %rsp, %r14 */
	static const uint8_t bytes[] = { 0x4c, 0x8d, 0x1d, 0x38, 0,    0,    0,
					 0x41, 0x53, 0x41, 0x56, 0x49, 0x89, 0xe6 };
	static struct ptd_insn insns[] = {
		{ .offset = 0, .size = 7, .symbol = 1 },
		{ .offset = 7, .size = 2, .symbol = 1 },
		{ .offset = 9, .size = 2, .symbol = 1 },
		{ .offset = 11, .size = 3, .symbol = 1 },
	};
	struct fixture *f = *state;
	const struct ptd_block block = { .n_insns = ARRAY_LEN(insns),
					 .size = sizeof(bytes),
					 .mode = 64,
					 .object = &f->objects[0],
					 .address = 0x1000,
					 .insns = insns,
					 .bytes = bytes };
	struct alone a;

	alone_init(&a, f);
	for (size_t i = 0; i < 1000; i++) {
		f->runs[f->batch.n_runs++] = (struct ptd_run){
			.block = &block, .base = 0x1000, .t = i, .n = ARRAY_LEN(insns)
		};
		alone_give(&a, f);
	}
	assert_in_range(a.thread.stack->traps.n, 64, 100);
	alone_deinit(&a);
}

/* What was installed and interrupted in functions that move to another stack goes with them. */
static void test_moved(void **state)
{
	static const char *const before[] = {
		"1000:1c>c000", "c000:2r",      "2000:1c>3000", "3000:1c>c000", "c000:2r",
		"1001:1c>c000", "c000:2r",      "4000:1c>b000", "b000:1c>3000", "3000:1c>c000",
		"c000:2r",      "1002:1c>c000", "c000:2r",
	};
	struct fixture *f = *state;
	struct callstack *taken, *other;
	struct alone a;

	alone_init(&a, f);
	for (size_t i = 0; i < ARRAY_LEN(before); i++)
		take_word(f, before[i]);
	take_word(f, "3001:1r");
	f->batch.n_runs--;
	alone_give(&a, f);
	taken = a.pool.parked.items[0].stack;
	other = a.pool.parked.items[1].stack;
	assert_int_equal(other->frames.n, 4);
	for (size_t i = 1; i <= 3; i++) {
		assert_int_equal(vec_push(&other->traps, { i, i }), 0);
		assert_int_equal(vec_push(&other->suspended, { .frame = i }), 0);
		assert_int_equal(vec_push(&other->jumped, { .frame = i }), 0);
	}
	other->n_attached = 4;
	/* The one with f, g and swapcontext() is taken, until g returns to k. */
	take_word(f, "3001:1r");
	take_word(f, "b001:1o");
	alone_give(&a, f);
	assert_ptr_equal(a.thread.stack, other);
	assert_int_equal(other->frames.n, 2);
	assert_int_equal(other->traps.n, 1);
	assert_int_equal(other->suspended.n, 1);
	assert_int_equal(taken->frames.n, 3);
	assert_int_equal(taken->traps.n, 1);
	assert_int_equal(taken->traps.items[0].handler, 3);
	assert_int_equal(taken->traps.items[0].frame, 2);
	assert_int_equal(taken->suspended.n, 1);
	assert_int_equal(taken->suspended.items[0].frame, 2);
	assert_int_equal(other->jumped.n, 1);
	assert_int_equal(taken->jumped.n, 1);
	assert_int_equal(taken->jumped.items[0].frame, 2);
	alone_deinit(&a);
}

/* One function more than may be open calls itself; what it calls beyond that is part of it. */
static void test_depth(void **state)
{
	enum { MORE = 1000 };
	struct fixture *f = *state;

	f->is_quiet = true;
	for (size_t i = 0; i < PTD_CALLS_DEPTH_MAX + MORE; i++) {
		take_word(f, "2000:1c>2000");
		if (f->batch.n_runs == RUNS / 2)
			give_batch(f);
	}
	give_batch(f);
	assert_in_range(ptd_calls_stats(f->calls)->n_too_deep, MORE - 1, MORE);
	assert_int_equal(f->check.stacks.items[0].frames.n, PTD_CALLS_DEPTH_MAX);
	take_word(f, "2000:2r");
	for (size_t i = 0; i < PTD_CALLS_DEPTH_MAX + MORE - 1; i++) {
		take_word(f, "2001:1r");
		if (f->batch.n_runs == RUNS / 2)
			give_batch(f);
	}
	take_word(f, "2001:1o");
	give_batch(f);
	assert_int_equal(f->check.stacks.items[0].frames.n, 1);
	assert_int_equal(f->check.n_faults, 0);
}

/* Calls that do not return, and jumps that are calls, do not go deeper each time. */
static void test_bounded(void **state)
{
	static const char *const rounds[] = {
		/* Local calls whose address is popped. */
		"1000:2c>1100 1100:1j>1000",
		/* Push and jmp; the same, by code without symbols. */
		"1000:2j>3000 3000:1r 1002:1j>1000",
		"1000:2C 9010:1J 9050:2C 9090:1r 9052:1J 9020:1J 9030:1r 9051:1r 1002:1j>1000",
		/* Returns to code of which nothing is known. */
		"3005:1C 2000:1r 4005:1r 2005:1r",
		"1005:1C 9010:1C 2000:1r 3005:1J",
		/* A call in code without symbols whose function does not return. */
		"9012:1C 9030:1C 9040:1J",
	};

	for (size_t i = 0; i < ARRAY_LEN(rounds); i++) {
		struct fixture *f;
		int32_t lowest = 0, highest = 0;

		(void)teardown(state);
		assert_int_equal(setup(state), 0);
		f = *state;
		f->is_quiet = true;
		take_word(f, "9010:2j>9012");
		take_word(f, "9012:1j>1000");
		for (size_t k = 0; k < 5000; k++) {
			_cleanup_(freep) char *copy = strdup(rounds[i]);
			char *rest = NULL;

			assert_non_null(copy);
			for (char *word = strtok_r(copy, " ", &rest); word;
			     word = strtok_r(NULL, " ", &rest))
				take_word(f, word);
			give_batch(f);
			for (size_t n = 0; n < f->check.stacks.n; n++) {
				const struct callcheck_stack *stack = &f->check.stacks.items[n];

				if (stack->frames.n == 0)
					continue;
				if (stack->frames.items[0].depth < lowest)
					lowest = stack->frames.items[0].depth;
				if (stack->frames.items[stack->frames.n - 1].depth > highest)
					highest = stack->frames.items[stack->frames.n - 1].depth;
			}
		}
		assert_in_range(-lowest, 0, 64);
		assert_in_range(highest, 0, 8);
		assert_int_equal(ptd_calls_stats(f->calls)->n_too_deep, 0);
		assert_int_equal(f->check.n_faults, 0);
	}
}

/* So many functions are open on other stacks that there is room for a few more. */
static void test_frames(void **state)
{
	enum { ROOM = 10, CALLS = 100 };
	struct fixture *f = *state;
	struct alone a;

	alone_init(&a, f);
	a.world.list.n_frames = PTD_CALLS_FRAMES_MAX - ROOM;
	for (size_t i = 0; i < CALLS; i++)
		take_word(f, "2000:1c>2000");
	alone_give(&a, f);
	assert_int_equal(a.thread.stack->frames.n, ROOM);
	assert_int_equal(a.world.list.n_frames, PTD_CALLS_FRAMES_MAX);
	assert_int_equal(a.world.list.stats.n_too_deep, CALLS - ROOM);
	/* Those behind a gap are open frames, too. */
	take_word(f, "gap");
	take_word(f, "2000:1o");
	alone_give(&a, f);
	assert_true(a.world.list.n_frames <= PTD_CALLS_FRAMES_MAX + 1);
	a.world.list.n_frames -= PTD_CALLS_FRAMES_MAX - ROOM;
	alone_deinit(&a);
}

/* Of too many threads the one that ran longest ago is ended, and that takes no search. */
static void test_threads(void **state)
{
	enum { MORE = 20000, N = PTD_CALLS_THREADS_MAX + MORE };
	const struct ptd_call_thread *const *threads;
	struct fixture *f = *state;
	const clock_t start = clock();
	size_t n;

	f->is_quiet = true;
	for (uint32_t i = 0; i < N; i++) {
		f->slice.id++;
		f->slice.tid = 1 + i;
		take_word(f, "1000:1o");
		give_batch(f);
		/* The first one runs on. */
		f->slice.id++;
		f->slice.tid = 1;
		take_word(f, "1001:1o");
		give_batch(f);
	}
	threads = ptd_calls_threads(f->calls, &n);
	assert_int_equal(n, N);
	assert_int_equal(ptd_calls_stats(f->calls)->n_threads_ended, MORE);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(threads[i]->ended, i > 0 && i <= MORE);
	assert_in_range(f->check.stacks.n, PTD_CALLS_THREADS_MAX, PTD_CALLS_THREADS_MAX + 1);
	assert_int_equal(f->check.n_faults, 0);
	assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
}

/* Of too many stacks that wait, the one that has waited longest is ended. */
static void test_stacks(void **state)
{
	enum { MORE = 100 };
	struct fixture *f = *state;

	f->is_quiet = true;
	/* The last one has not gone yet. */
	for (size_t i = 0; i <= PTD_CALLS_STACKS_MAX + MORE; i++) {
		take_word(f, "1000:1c>c000");
		take_word(f, "c000:2r");
		give_batch(f);
	}
	assert_int_equal(ptd_calls_stats(f->calls)->n_stacks_ended, MORE);
	assert_in_range(f->check.stacks.n, PTD_CALLS_STACKS_MAX, PTD_CALLS_STACKS_MAX + 2);
	assert_int_equal(ptd_calls_finish(f->calls), 0);
	take_calls(f);
	callcheck_end(&f->check);
	assert_int_equal(f->check.n_faults, 0);
}

/* A fiber that ends gives its number to a later one. */
static void test_numbers(void **state)
{
	static const char *const words[] = { "1000:1c>c000", "c000:2r", "2000:1c>c200", "c200:2r",
					     "1001:1j>1000" };
	struct fixture *f = *state;

	f->is_quiet = true;
	for (size_t i = 0; i < 10000; i++) {
		for (size_t k = 0; k < ARRAY_LEN(words); k++)
			take_word(f, words[k]);
		give_batch(f);
	}
	assert_true(ptd_calls_stats(f->calls)->n_switches >= 20000);
	assert_in_range(f->check.stacks.n, 2, 4);
	assert_int_equal(f->check.n_faults, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_fibers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_goroutines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_schedulers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gaps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_traps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
