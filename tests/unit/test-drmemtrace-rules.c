/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The sink "drmemtrace" on random streams: whatever comes, sane or not, the file obeys the rules
 * that a checker of the format applies, and holds what ran, all but branches of unknown outcome.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/drmemtrace/record.h"
#include "decoder/sink/sinks.h"
#include "tests/lib/kinds.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/unpack.h"

#define N_STREAMS 300
#define N_STEPS   600
#define AREA      0x1000u /* code lies in the first 512 bytes from here: it overlaps a lot */

#define I(offset_, size_, class_)                                                 \
	{                                                                         \
		.offset = (offset_), .size = (size_), .iclass = PTD_INSN_##class_ \
	}
#define BLOCK(id_, target_, code, ...)                                                   \
	{                                                                                \
		.id = (id_), .n_insns = ARRAY_LEN(((struct ptd_insn[]){ __VA_ARGS__ })), \
		.size = sizeof(code) - 1, .mode = 64, .bytes = (const uint8_t *)(code),  \
		.insns = (const struct ptd_insn[]){ __VA_ARGS__ }, .target = (target_),  \
		.object = &object,                                                       \
	}

static const struct ptd_object object = { .name = "/bin/demo" };

static const struct ptd_block blocks[] = {
	BLOCK(0, 0, "\x90\x90\x90", I(0, 1, OTHER), I(1, 1, OTHER), I(2, 1, OTHER)),
	BLOCK(1, 0, "\x66\x90\x90", I(0, 2, OTHER), I(2, 1, OTHER)),
	BLOCK(2, 0, "\xf8", I(0, 1, OTHER)),
	BLOCK(3, 0x13, "\x90\x74\x10", I(0, 1, OTHER), I(1, 2, JUMP_COND)),
	BLOCK(4, 2, "\x74\x00", I(0, 2, JUMP_COND)),
	BLOCK(5, 0x12, "\xeb\x10", I(0, 2, JUMP)),
	BLOCK(6, 0x25, "\x90\x90\xe8\x1e\0\0\0", I(0, 1, OTHER), I(1, 1, OTHER), I(2, 5, CALL)),
	BLOCK(7, 0, "\xc3", I(0, 1, RETURN)),
	BLOCK(8, 0, "\x90\xff\xe0", I(0, 1, OTHER), I(1, 2, JUMP_INDIRECT)),
	BLOCK(9, 0, "\xb8\x27\0\0\0\x0f\x05", I(0, 5, OTHER), I(5, 2, SYSCALL)),
	BLOCK(10, 0, "\xb8\x0f\0\0\0\x0f\x05", I(0, 5, OTHER), I(5, 2, SYSCALL)),
	BLOCK(11, 0, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", I(0, 7, OTHER), I(7, 2, SYSCALL)),
	BLOCK(12, 0, "\xb8\x3b\0\0\0\x0f\x05", I(0, 5, OTHER), I(5, 2, SYSCALL)),
	BLOCK(13, 0, "\x0f\x05", I(0, 2, SYSCALL)),
	BLOCK(14, 0, "\xff\xd0", I(0, 2, CALL_INDIRECT)),
	BLOCK(15, 0, "\x48\xb8\1\2\3\4\5\6\7\x08", I(0, 10, OTHER)),
};

struct executed {
	uint64_t pc;
	const uint8_t *bytes;
	uint8_t size;
	uint8_t class;
};

/* --- a random stream ----------------------------------------------------------------------- */

static uint32_t seed;

static uint32_t any(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)(seed >> 8) * n) >> 24);
}

static uint64_t likely_successor(const struct ptd_run *run)
{
	const struct ptd_insn *last = &run->block->insns[run->first + run->n - 1];
	const uint64_t next = run->base + last->offset + last->size;

	switch (last->iclass) {
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		return run->base + (uint64_t)run->block->target;
	case PTD_INSN_JUMP_COND:
		return any(2) ? next : run->base + (uint64_t)run->block->target;
	case PTD_INSN_OTHER:
	case PTD_INSN_SYSCALL:
		return next;
	default:
		return AREA + any(512);
	}
}

static struct ptd_run random_run(uint64_t ip, uint64_t t)
{
	const struct ptd_block *block = &blocks[any(ARRAY_LEN(blocks))];
	const uint16_t first = (uint16_t)(any(4) ? 0 : any(block->n_insns));

	const uint16_t left = block->n_insns - first;

	return (struct ptd_run){
		.block = block,
		.base = ip - block->insns[first].offset,
		.first = first,
		.n = any(4) ? left : (uint16_t)(1 + any(left)),
		.t = t,
	};
}

/* Feed the sink a stream; @ret_executed has room for 3 instructions a step. Return: how many ran.
 */
static size_t feed(struct sink *sink, struct executed *ret_executed)
{
	uint64_t ip = AREA, interrupted[8] = { AREA, AREA, AREA, AREA, AREA, AREA, AREA, AREA };
	struct ptd_slice slice = { .cpu = 1, .pid = 5, .tid = 7, .comm = "r", .t0 = 1000 };
	size_t n = 0, n_interrupted = 0;

	for (size_t step = 0; step < N_STEPS; step++) {
		struct ptd_mark mark = { .t = slice.t0, .ip = ip };
		struct ptd_run run = random_run(ip, slice.t0 + any(20000));
		struct ptd_batch batch = {
			.slice = &slice, .runs = &run, .n_runs = 1, .marks = &mark
		};

		if (!any(20)) {
			slice.id++;
			slice.cpu = any(4);
			slice.t0 += any(5000);
			slice.space += !any(20);
		}
		assert_int_equal(sink_batch(sink, &batch), 0);
		for (size_t i = run.first; i < (size_t)run.first + run.n; i++)
			ret_executed[n++] = (struct executed){
				run.base + run.block->insns[i].offset,
				run.block->bytes + run.block->insns[i].offset,
				run.block->insns[i].size,
				run.block->insns[i].iclass,
			};

		ip = likely_successor(&run);
		mark.ip = ip;
		mark.run = 0;
		batch.n_runs = 0;
		batch.n_marks = 1;
		if (ret_executed[n - 1].class == PTD_INSN_SYSCALL || !any(50)) {
			const uint64_t came_from[] = {
				ip,
				ip - 2,
				AREA + any(512),
				interrupted[any(8)],
				interrupted[n_interrupted % 8],
				interrupted[n_interrupted % 8] - 2,
			};

			mark.kind = PTD_MARK_OFF;
			assert_int_equal(sink_batch(sink, &batch), 0);
			interrupted[++n_interrupted % 8] = ip;
			ip = came_from[any(ARRAY_LEN(came_from))];
		}
		while (!any(8)) {
			mark.kind = any(8) ? PTD_MARK_ASYNC : PTD_MARK_GAP;
			mark.reason = any(2) ? PTD_GAP_NO_CODE : PTD_GAP_OVERFLOW;
			mark.ip = any(10) ? ip : AREA + any(512);
			assert_int_equal(sink_batch(sink, &batch), 0);
			interrupted[++n_interrupted % 8] = ip;
			if (any(2))
				ip = AREA + any(512);
		}
		if (!any(60))
			ip = AREA + any(512);
	}
	return n;
}

/* --- the rules ----------------------------------------------------------------------------- */

struct seen {
	uint64_t pc; /* 0: none */
	uint8_t bytes[16];
	uint16_t type, size;
	uint64_t target; /* where it may go besides its fall-through, or alone */
};

struct checker {
	struct seen prev; /* the last instruction */
	/* The last one since the latest signal, or before it once it returned. */
	struct seen context;
	struct {
		uint64_t pc;
		struct seen before;
	} stack[N_STEPS * 4];
	size_t depth;
	uint64_t resume; /* after marker 1: where the next instruction must be; 0: anywhere */
	int last_xfer;   /* marker 0 or 1 since the last instruction; -1: none */
	bool window_changed, timed;
	uint64_t stamp, target;
	uint8_t bytes[16];
	size_t n_bytes;
	uint8_t known[0x1000][16]; /* announced, by pc; [15] is the size */
	size_t n_markers[MEMTRACE_SYMBOL + 1];

	/* The checker's return addresses, which it believes whatever the program does. */
	uint64_t returns[N_STEPS * 4];
	size_t n_returns;
	size_t n_open; /* functions */
	bool has_function;
};

static bool is_branch(uint16_t type)
{
	return type == 11 || type == 12 || (type >= 14 && type <= 16) || type == 48 || type == 49;
}

static bool continues(const struct seen *from, uint64_t pc)
{
	const uint64_t next = from->pc + from->size;

	return !from->pc ||
	       pc == (!is_branch(from->type) || from->type == MEMTRACE_UNTAKEN_JUMP ? next
										    : from->target);
}

static void check_marker(struct checker *c, const struct memtrace_record *r)
{
	assert_true(r->size < ARRAY_LEN(c->n_markers));
	c->n_markers[r->size]++;
	if (r->size != MEMTRACE_BRANCH_TARGET)
		assert_true(c->n_bytes == 0 && c->target == 0);
	switch (r->size) {
	case MEMTRACE_TIMESTAMP:
		assert_true(r->addr >= c->stamp);
		c->stamp = r->addr;
		c->timed = true;
		break;
	case MEMTRACE_WINDOW:
		/* DynamoRIO takes a file whose first window is another for a part of a trace. */
		assert_int_equal(r->addr, c->n_markers[MEMTRACE_WINDOW] - 1);
		assert_true(r->addr > 0 || c->prev.pc == 0);
		c->window_changed = true;
		break;
	case MEMTRACE_KERNEL_EVENT:
		assert_true(r->addr != 0);
		/* Or where the handler before it would have returned to. */
		if (r->addr != c->context.pc && !c->window_changed &&
		    !(c->last_xfer == 1 && r->addr == c->resume))
			assert_true(continues(&c->context, r->addr));
		c->stack[c->depth].pc = r->addr;
		c->stack[c->depth++].before = c->context;
		c->context = (struct seen){};
		c->last_xfer = 0;
		c->returns[c->n_returns++] = 0;
		break;
	case MEMTRACE_KERNEL_XFER:
		assert_int_equal(r->addr, c->prev.pc + c->prev.size);
		c->resume = c->depth ? c->stack[c->depth - 1].pc : 0;
		c->context = c->depth ? c->stack[c->depth - 1].before : (struct seen){};
		c->depth -= c->depth > 0;
		c->last_xfer = 1;
		break;
	case MEMTRACE_FUNCTION:
		assert_true(is_branch(c->prev.type));
		c->has_function = true;
		break;
	case MEMTRACE_RETURN_ADDRESS:
		assert_true(c->has_function && is_branch(c->prev.type));
		if (c->n_returns > 0)
			assert_int_equal(r->addr, c->returns[c->n_returns - 1]);
		c->has_function = false;
		c->n_open++;
		break;
	case MEMTRACE_RETURN_VALUE:
		assert_true(c->has_function && is_branch(c->prev.type) && c->n_open > 0);
		c->has_function = false;
		c->n_open--;
		break;
	case MEMTRACE_BRANCH_TARGET:
		assert_true(r->addr != 0);
		c->target = r->addr;
		break;
	}
}

static void check_insn(struct checker *c, const struct memtrace_record *r,
		       const struct executed *executed)
{
	const uint8_t *known = executed->bytes;
	struct seen insn = { .pc = r->addr, .type = r->type, .size = r->size };
	int32_t disp = 0;

	assert_true(c->stamp != 0);
	if (c->timed && is_branch(c->prev.type))
		assert_int_equal(c->last_xfer, 0);
	if (!c->window_changed && c->last_xfer < 0)
		assert_true(continues(&c->prev, r->addr));
	if (c->last_xfer == 1 && c->resume)
		assert_int_equal(r->addr, c->resume);

	assert_int_equal(r->type == 12 || r->type == 15 || r->type == 16, c->target != 0);
	if (known[0] == 0xe8)
		memcpy(&disp, known + 1, 4);
	else
		disp = (int8_t)known[1];
	if (r->type == MEMTRACE_DIRECT_CALL || r->type == MEMTRACE_INDIRECT_CALL)
		c->returns[c->n_returns++] = r->addr + r->size;
	else if (r->type == MEMTRACE_RETURN && c->n_returns > 0)
		c->n_returns--;
	insn.target = c->target ? c->target : r->addr + r->size + (uint64_t)(int64_t)disp;
	c->prev = c->context = insn;
	c->last_xfer = -1;
	c->window_changed = c->timed = false;
	c->target = c->n_bytes = 0;
}

/* Such a branch may be missing: where it went is not known. */
static bool may_be_missing(const struct executed *executed)
{
	return executed->class == PTD_INSN_JUMP_COND || executed->class == PTD_INSN_JUMP_INDIRECT ||
	       executed->class == PTD_INSN_CALL_INDIRECT || executed->class == PTD_INSN_RETURN;
}

/* @known: the bytes that a reader has for it; [15] is their number. */
static bool is_of(const struct memtrace_record *r, const uint8_t *known,
		  const struct executed *executed)
{
	static const uint16_t types[] = {
		[PTD_INSN_OTHER] = 10,  [PTD_INSN_SYSCALL] = 10,
		[PTD_INSN_JUMP] = 11,   [PTD_INSN_JUMP_INDIRECT] = 12,
		[PTD_INSN_CALL] = 14,   [PTD_INSN_CALL_INDIRECT] = 15,
		[PTD_INSN_RETURN] = 16, [PTD_INSN_JUMP_COND] = 48,
	};
	const uint16_t type = r->type == MEMTRACE_UNTAKEN_JUMP ? MEMTRACE_TAKEN_JUMP : r->type;

	return executed->pc == r->addr && executed->size == r->size && known[15] == r->size &&
	       types[executed->class] == type && !memcmp(known, executed->bytes, r->size);
}

/* Return: how many of the instructions executed are not in the file. */
static size_t check_file(struct checker *c, const char *path, const struct executed *executed,
			 size_t n)
{
	struct unpacked u = unpack(path);
	struct memtrace_record r = {};
	size_t i = 0, n_missing = 0;

	for (size_t at = 0; at < u.bytes.n; at += sizeof(r)) {
		memcpy(&r, u.bytes.items + at, sizeof(r));
		if (r.type == MEMTRACE_MARKER) {
			check_marker(c, &r);
		} else if (r.type == MEMTRACE_ENCODING) {
			assert_true(c->n_bytes + r.size <= 15 && r.size <= 8);
			memcpy(c->bytes + c->n_bytes, &r.addr, r.size);
			c->n_bytes += r.size;
		} else if (is_branch(r.type) || r.type == MEMTRACE_INSN) {
			uint8_t *known = c->known[r.addr & 0xfff];

			if (c->n_bytes) {
				memcpy(known, c->bytes, c->n_bytes);
				known[15] = (uint8_t)c->n_bytes;
			}
			for (; i < n && !is_of(&r, known, &executed[i]); i++, n_missing++)
				assert_true(may_be_missing(&executed[i]));
			assert_true(i < n);
			check_insn(c, &r, &executed[i++]);
		}
	}
	assert_int_equal(r.type, MEMTRACE_FOOTER);
	unpacked_deinit(&u);
	for (; i < n; i++, n_missing++)
		assert_true(may_be_missing(&executed[i]));
	return n_missing;
}

static void random_streams(void **state)
{
	static struct executed executed[N_STEPS * 3];
	size_t n_insns = 0, n_missing = 0, n_markers[MEMTRACE_SYMBOL + 1] = {};

	(void)state;
	for (uint32_t i = 0; i < N_STREAMS; i++) {
		const struct ptd_info info = { .clock = PTD_CLOCK_NS };
		char base[TEMPDIR_SIZE], path[128];
		static struct checker checker;
		struct sink *sink;
		size_t n;

		seed = i;
		tempdir_make("drmemtrace-rules", base);
		assert_int_equal(sink_open(&sink_drmemtrace, base, &info, NULL, &sink), 0);
		n = feed(sink, executed);
		assert_int_equal(sink_finish(sink, NULL), 0);
		sink_free(sink);

		checker = (struct checker){ .last_xfer = -1 };
		snprintf(path, sizeof(path), "%s/trace/drmemtrace.r.7.0000.trace.zip", base);
		n_insns += n;
		n_missing += check_file(&checker, path, executed, n);
		for (size_t m = 0; m < ARRAY_LEN(n_markers); m++)
			n_markers[m] += checker.n_markers[m];
		tempdir_remove(base);
	}
	print_message("  %zu instructions, %zu left out, %zu signals, %zu returns, %zu windows, "
		      "%zu calls\n",
		      n_insns, n_missing, n_markers[0], n_markers[1], n_markers[14],
		      n_markers[MEMTRACE_RETURN_ADDRESS]);
	assert_true(n_markers[0] > 1000 && n_markers[1] > 1000 && n_markers[14] > 1000);
	assert_true(n_markers[MEMTRACE_RETURN_ADDRESS] > 1000);
	assert_true(n_missing < n_insns / 10);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
