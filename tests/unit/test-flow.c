/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Judging blocks: each row is a block, how far it got and where control went; the verdict, the
 * packets and what is logged must follow.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/plugin/flow.h"
#include "tests/lib/emufree.h"
#include "tests/system/unit.h"

#define AT         UINT64_C(0x401000)
#define RING       4096
#define KERNEL     UINT64_C(0xffffffff81000000)
#define TIP_KERNEL 0x6d, 0x00, 0x00, 0x00, 0x81, 0xff, 0xff
#define WHOLE      0

enum judge {
	STEP,
	INTERRUPT,
	SYSCALL,
	ODD,
	EVENT, /* a handler at KERNEL, which is traced */
	ENTER, /* a system call into the kernel there */
	LEAVE,
};

struct row {
	const char *name;
	const char *code; /* of the block, which begins with a nop */
	size_t n_code[3]; /* sizes of its instructions */
	bool cut;         /* its last instruction did not begin */
	enum judge judge;
	uint64_t ip;
	enum flow_verdict verdict;
	uint32_t log[3];
	size_t n_log;
	uint8_t packets[12]; /* once flushed */
	size_t n_packets;
	uint32_t n_pushed;
};

#define PACKETS(...) .n_packets = sizeof((uint8_t[]){ __VA_ARGS__ }), .packets = { __VA_ARGS__ }
#define LOG(...) \
	.n_log = sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), .log = { __VA_ARGS__ }

#define JE              \
	"\x90\x74\x10", \
	{               \
		1, 2    \
	} /* to 0x13 */
#define JE_SELF         \
	"\x90\x74\xfe", \
	{               \
		1, 2    \
	} /* to 0x01 */
#define JMP             \
	"\x90\xeb\x10", \
	{               \
		1, 2    \
	} /* to 0x13 */
#define CALL                        \
	"\x90\xe8\x10\x00\x00\x00", \
	{                           \
		1, 5                \
	} /* to 0x16 */
#define CALL_0                      \
	"\x90\xe8\x00\x00\x00\x00", \
	{                           \
		1, 5                \
	}
#define RET          \
	"\x90\xc3",  \
	{            \
		1, 1 \
	}
#define JMP_RAX         \
	"\x90\xff\xe0", \
	{               \
		1, 2    \
	}
#define CALL_RAX        \
	"\x90\xff\xd0", \
	{               \
		1, 2    \
	}
#define NOPS            \
	"\x90\x90\x90", \
	{               \
		1, 1, 1 \
	}
#define MOVSB           \
	"\x90\xf3\xa4", \
	{               \
		1, 2    \
	}
#define SYS             \
	"\x90\x0f\x05", \
	{               \
		1, 2    \
	}
#define INT3         \
	"\x90\xcc",  \
	{            \
		1, 1 \
	}
#define LRETQ           \
	"\x90\x48\xcb", \
	{               \
		1, 2    \
	}

static const struct row rows[] = {
	{ "falls through", NOPS, false, STEP, AT + 3, FLOW_FOLLOWS, LOG(WHOLE) },
	{ "a direct jump", JMP, false, STEP, AT + 0x13, FLOW_FOLLOWS, LOG(WHOLE) },
	{ "a jump that went elsewhere", JMP, false, STEP, AT + 0x14, FLOW_ODD, .n_log = 0 },
	{ "a branch that is taken", JE, false, STEP, AT + 0x13, FLOW_FOLLOWS, LOG(WHOLE),
	  PACKETS(0x06) },
	{ "a branch that is not", JE, false, STEP, AT + 3, FLOW_FOLLOWS, LOG(WHOLE),
	  PACKETS(0x04) },
	{ "a branch to itself", JE_SELF, false, STEP, AT + 1, FLOW_FOLLOWS, LOG(WHOLE),
	  PACKETS(0x06) },
	{ "a call", CALL, false, STEP, AT + 0x16, FLOW_FOLLOWS, LOG(WHOLE), .n_pushed = 1 },
	{ "a call of what follows is none", CALL_0, false, STEP, AT + 6, FLOW_FOLLOWS, LOG(WHOLE) },
	{ "a return", RET, false, STEP, AT + 0x99, FLOW_FOLLOWS, LOG(WHOLE),
	  PACKETS(0x2d, 0x99, 0x10) },
	{ "an indirect jump", JMP_RAX, false, STEP, AT + 0x99, FLOW_FOLLOWS, LOG(WHOLE),
	  PACKETS(0x2d, 0x99, 0x10) },
	{ "an indirect call", CALL_RAX, false, STEP, AT + 0x99, FLOW_FOLLOWS, LOG(WHOLE),
	  PACKETS(0x2d, 0x99, 0x10), .n_pushed = 1 },
	{ "a far return", LRETQ, false, STEP, AT + 0x99, FLOW_FOLLOWS, LOG(WHOLE),
	  PACKETS(0x2d, 0x99, 0x10) },
	{ "a string instruction that is done", MOVSB, false, STEP, AT + 3, FLOW_FOLLOWS,
	  LOG(WHOLE) },
	{ "a string instruction that goes on", MOVSB, false, STEP, AT + 1, FLOW_RESTARTS,
	  LOG(TRUTHLOG_PARTIAL, 0, 1) },

	{ "the last one is tried again", NOPS, false, STEP, AT + 2, FLOW_RESTARTS,
	  LOG(TRUTHLOG_PARTIAL, 0, 2) },
	{ "a return is tried again", RET, false, STEP, AT + 1, FLOW_RESTARTS,
	  LOG(TRUTHLOG_PARTIAL, 0, 1) },
	{ "one in the midst is tried again", NOPS, true, STEP, AT + 1, FLOW_RESTARTS,
	  LOG(TRUTHLOG_PARTIAL, 0, 1) },
	{ "the first one is tried again", NOPS, true, STEP, AT, FLOW_RESTARTS, .n_log = 0 },
	{ "left in the midst, to nowhere known", NOPS, true, STEP, AT + 3, FLOW_ODD, .n_log = 0 },
	{ "not at an instruction", JE, true, STEP, AT + 2, FLOW_ODD, .n_log = 0 },

	{ "a signal behind the block", JE, false, INTERRUPT, AT + 3, 0, LOG(WHOLE),
	  PACKETS(0x04, 0x3d, 0x03, 0x10, 0x01) },
	{ "a fault in the midst", NOPS, true, INTERRUPT, AT + 1, 0, LOG(TRUTHLOG_PARTIAL, 0, 1),
	  PACKETS(0x3d, 0x01, 0x10, 0x01) },
	{ "a fault of the last", NOPS, false, INTERRUPT, AT + 2, 0, LOG(TRUTHLOG_PARTIAL, 0, 2),
	  PACKETS(0x3d, 0x02, 0x10, 0x01) },
	{ "a signal in a string instruction", MOVSB, false, INTERRUPT, AT + 1, 0,
	  LOG(TRUTHLOG_PARTIAL, 0, 1), PACKETS(0x3d, 0x01, 0x10, 0x01) },
	{ "int3", INT3, false, INTERRUPT, AT + 2, 0, LOG(TRUTHLOG_UNREPORTED, 0),
	  PACKETS(0x3d, 0x01, 0x10, 0x01) },
	{ "a signal that makes no sense", NOPS, false, INTERRUPT, AT + 0x99, 0,
	  LOG(TRUTHLOG_PARTIAL, 0, 2), PACKETS(0x3d, 0x02, 0x10, 0x01) },

	{ "a system call", SYS, false, SYSCALL, 0, 0, LOG(WHOLE), PACKETS(0x01) },
	{ "a system call by int", INT3, false, SYSCALL, 0, 0, LOG(TRUTHLOG_UNREPORTED, 0),
	  PACKETS(0x3d, 0x01, 0x10, 0x01) },
	{ "odd", NOPS, false, ODD, 0, 0, LOG(TRUTHLOG_PARTIAL, 0, 2),
	  PACKETS(0x3d, 0x02, 0x10, 0x01) },
	{ "odd, and it was not near its end", NOPS, true, ODD, 0, 0,
	  PACKETS(0x3d, 0x00, 0x10, 0x01) },

	{ "an interrupt behind the block", JE, false, EVENT, AT + 3, 0, LOG(WHOLE),
	  PACKETS(0x04, 0x3d, 0x03, 0x10, TIP_KERNEL) },
	{ "an exception in the midst", NOPS, true, EVENT, AT + 1, 0, LOG(TRUTHLOG_PARTIAL, 0, 1),
	  PACKETS(0x3d, 0x01, 0x10, TIP_KERNEL) },
	{ "int3, traced", INT3, false, EVENT, AT + 2, 0, LOG(TRUTHLOG_UNREPORTED, 0),
	  PACKETS(0x3d, 0x01, 0x10, TIP_KERNEL) },
	{ "a system call, traced", SYS, false, ENTER, 0, 0, LOG(WHOLE), PACKETS(TIP_KERNEL) },
	{ "into the kernel without a system call", NOPS, true, ENTER, 0, 0, .n_log = 0,
	  PACKETS(0x3d, 0x00, 0x10, TIP_KERNEL) },
	{ "a far return to where no packets are", LRETQ, false, LEAVE, 0, 0, LOG(WHOLE),
	  PACKETS(0x01) },
	{ "there without one", NOPS, false, LEAVE, 0, 0, LOG(TRUTHLOG_PARTIAL, 0, 2),
	  PACKETS(0x3d, 0x02, 0x10, 0x01) },
};

static struct block *make_block(struct blocks *blocks, const struct row *row)
{
	struct block_insn insns[3];
	struct block *block;
	size_t n = 0, at = 0;

	for (; n < 3 && row->n_code[n]; at += row->n_code[n++])
		insns[n] =
		    (struct block_insn){ AT + at, (const uint8_t *)row->code + at, row->n_code[n] };
	assert_int_equal(blocks_get(blocks, AT, insns, n, &block), BLOCKS_NEW);
	return block;
}

static void check(const struct row *row)
{
	static struct truthlog log;
	static uint8_t ring[RING];
	struct blocks blocks = { .mode = 64 };
	struct encode e;
	struct flow flow = {
		.encode = &e,
		.block = make_block(&blocks, row),
		.last_began = !row->cut,
		.log = &log,
	};
	uint64_t head;

	log.n = 0;
	encode_init(&e, RING, RING, true, false);
	e.ring = ring;
	encode_enable(&e, AT, 0);
	head = e.state.head;
	switch (row->judge) {
	case STEP:
		assert_int_equal(flow_step(&flow, row->ip), row->verdict);
		break;
	case INTERRUPT:
		flow_interrupt(&flow, row->ip);
		break;
	case SYSCALL:
		flow_syscall(&flow);
		break;
	case ODD:
		flow_odd(&flow);
		break;
	case EVENT:
		flow_event(&flow, row->ip, KERNEL);
		break;
	case ENTER:
		unit_enter_kernel(&flow, KERNEL);
		break;
	case LEAVE:
		unit_leave(&flow);
		break;
	}
	if (row->judge == STEP || row->judge == EVENT || row->judge == ENTER)
		assert_ptr_equal(flow.encode, &e);
	else
		assert_null(flow.encode);
	encode_flush(&e);
	assert_int_equal(e.state.head - head, row->n_packets);
	assert_memory_equal(ring + head, row->packets, row->n_packets);
	assert_int_equal(log.n, row->n_log);
	assert_memory_equal(log.words, row->log, row->n_log * sizeof(uint32_t));
	assert_int_equal(e.state.calls.depth, row->n_pushed);
	blocks_deinit(&blocks);
}

static void judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		check(&rows[i]);
	}
}

/* The vsyscall page: control goes there, QEMU does the call, and no instruction runs. */
static void vsyscall(void **state)
{
	static uint8_t ring[RING];
	struct blocks blocks = { .mode = 64 };
	struct block *block;
	struct encode e;
	struct flow flow;
	uint64_t head;

	(void)state;
	assert_int_equal(blocks_get(&blocks, AT, &(struct block_insn){ AT, NULL, 0 }, 1, &block),
			 BLOCKS_NEW);
	assert_int_equal(block->n, 0);
	encode_init(&e, RING, RING, true, false);
	e.ring = ring;
	encode_enable(&e, AT - 1, 0);
	head = e.state.head;
	flow = (struct flow){ .encode = &e, .block = block };
	flow_syscall(&flow);
	assert_int_equal(e.state.head - head, 4);
	assert_memory_equal(ring + head, ((uint8_t[]){ 0x3d, 0x00, 0x10, 0x01 }), 4);
	blocks_deinit(&blocks);
}

/* Blocks: the same code is the same block, and it ends before what is no instruction. */
static void blocks_are_shared(void **state)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x06 }; /* the last is illegal */
	const struct block_insn insns[] = { { AT, code, 1 },
					    { AT + 1, code + 1, 1 },
					    { AT + 2, code + 2, 1 } };
	struct block *a, *b, *c;
	struct blocks blocks = { .mode = 64 };

	(void)state;
	assert_int_equal(blocks_get(&blocks, AT, insns, 3, &a), BLOCKS_NEW);
	assert_int_equal(a->n, 2);
	assert_int_equal(a->next_ip, AT + 2);
	assert_int_equal(blocks_get(&blocks, AT, insns, 2, &b), 0);
	assert_ptr_equal(a, b);
	blocks_mark_handler(&blocks, AT);
	assert_true(block_has_handler(a));
	assert_int_equal(blocks_get(&blocks, AT, insns, 1, &c), BLOCKS_NEW);
	assert_ptr_not_equal(a, c);
	assert_true(block_has_handler(c));
	assert_int_equal(c->id, a->id + 1);
	assert_int_equal(block_index(a, AT + 1), 1);
	assert_int_equal(block_index(a, AT + 2), -1);
	blocks_deinit(&blocks);
}

/* 32-bit code: its instructions, and addresses that do not leave 4 GiB. */
static void blocks32(void **state)
{
	static const uint8_t code[] = { 0x40, 0xe8, 0xfb, 0xff, 0xff, 0x7f, 0x66,
					0xe8, 0,    0,    0xce, 0xcd, 0xce };
	const struct block_insn insns[] = {
		{ 0xf0000000, code, 1 },      { 0xf0000001, code + 1, 5 },
		{ 0xf0000006, code + 6, 4 },  { 0xf0000006, code + 6, 3 },
		{ 0xf000000a, code + 10, 1 }, { 0xf000000b, code + 11, 2 }
	};
	struct blocks blocks = { .mode = 32 };
	struct block *b;

	(void)state;
	assert_int_equal(blocks_get(&blocks, 0xf0000000, insns, 2, &b), BLOCKS_NEW);
	assert_int_equal(b->n, 2);
	assert_int_equal(b->end, BLOCK_CALL);
	assert_int_equal(b->next_ip, 0xf0000006);
	assert_int_equal(b->target, 0x70000001);
	assert_int_equal(blocks_get(&blocks, 0xf0000006, insns + 2, 1, &b), BLOCKS_NEW);
	assert_int_equal(b->n, 1);
	/* The offset has two bytes, and so has what is left of the address. */
	assert_int_equal(b->end, BLOCK_CALL);
	assert_int_equal(b->target, 0x000a);
	/* An INTO falls through, an INT does not, whatever its number. */
	assert_int_equal(blocks_get(&blocks, 0xf000000a, insns + 4, 1, &b), BLOCKS_NEW);
	assert_int_equal(b->end, BLOCK_FALLS);
	assert_int_equal(blocks_get(&blocks, 0xf000000b, insns + 5, 1, &b), BLOCKS_NEW);
	assert_int_equal(b->end, BLOCK_INTERRUPT);
	/* QEMU took it for other code than we do. */
	assert_int_equal(blocks_get(&blocks, 0xf0000006, insns + 3, 1, &b), BLOCKS_NEW);
	assert_int_equal(b->n, 0);
	blocks_deinit(&blocks);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(judged),
		cmocka_unit_test(vsyscall),
		cmocka_unit_test(blocks_are_shared),
		cmocka_unit_test(blocks32),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
