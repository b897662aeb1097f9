/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Traps: the code that OCaml makes for handlers of exceptions, and code that is like it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "decoder/calls/trap.h"
#include "decoder/x86/insn.h"

#define INSNS 8

static const struct {
	const char *what, *code;
	size_t size;
	enum trap_op op; /* of the last instruction */
	int64_t handler;
} rows[] = {
#define CODE(bytes) bytes, sizeof(bytes) - 1
	{ "a handler is installed (4.13)",
	  CODE("\x4c\x8d\x1d\x38\0\0\0\x41\x53\x41\xff\x76\x10\x49\x89\x66\x10"), TRAP_PUSH, 0x3f },
	{ "a handler before the block, by another register",
	  CODE("\x90\x4c\x8d\x2d\xf0\xff\xff\xff\x41\x55\x41\xff\x76\x28\x49\x89\x66\x28"),
	  TRAP_PUSH, -8 },
	{ "another address is pushed",
	  CODE("\x4c\x8d\x1d\x38\0\0\0\x41\x54\x41\xff\x76\x10\x49\x89\x66\x10"), TRAP_NONE, 0 },
	{ "another link is set",
	  CODE("\x4c\x8d\x1d\x38\0\0\0\x41\x53\x41\xff\x76\x10\x49\x89\x66\x18"), TRAP_NONE, 0 },
	{ "no address is pushed", CODE("\x41\xff\x76\x10\x49\x89\x66\x10"), TRAP_NONE, 0 },
	{ "a handler is removed (4.13)", CODE("\x90\x41\x8f\x46\x10"), TRAP_POP, 0 },
	{ "an exception is raised (4.13)", CODE("\x49\x8b\x66\x10\x41\x8f\x46\x10"), TRAP_RAISE,
	  0 },
	{ "a handler is installed (4.02)",
	  CODE("\x4c\x8d\x1d\x38\0\0\0\x41\x53\x41\x56\x49\x89\xe6"), TRAP_PUSH, 0x3f },
	{ "a frame of C", CODE("\x41\x55\x41\x56\x49\x89\xe6"), TRAP_NONE, 0 },
	{ "a handler is removed (4.02)", CODE("\x41\x5e\x48\x83\xc4\x08"), TRAP_POP, 0 },
	{ "an exception is raised (4.02)", CODE("\x4c\x89\xf4\x41\x5e"), TRAP_RAISE, 0 },
	{ "a register of C's caller is restored", CODE("\x41\x5d\x41\x5e"), TRAP_NONE, 0 },
};

/* Return: the op of the last instruction; each of the others is to have none. */
static enum trap_op last_op(const char *code, size_t size, int64_t *ret_handler)
{
	struct ptd_insn insns[INSNS];
	struct ptd_block block = { .mode = 64, .bytes = (const uint8_t *)code, .insns = insns };
	struct insn insn;

	for (size_t at = 0; at < size; at += insn.size) {
		assert_true(block.n_insns < INSNS);
		assert_int_equal(insn_decode(64, block.bytes + at, size - at, &insn), 0);
		insns[block.n_insns++] =
		    (struct ptd_insn){ .offset = (uint16_t)at, .size = insn.size };
	}
	for (size_t i = 0; i + 1u < block.n_insns; i++)
		assert_int_equal(trap_op_at(&block, i, ret_handler), TRAP_NONE);
	return trap_op_at(&block, block.n_insns - 1u, ret_handler);
}

static void test_ops(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t handler = 0;
		const enum trap_op op = last_op(rows[i].code, rows[i].size, &handler);

		if (op != rows[i].op || (op == TRAP_PUSH && handler != rows[i].handler))
			print_error("%s: %d, %lld\n", rows[i].what, (int)op, (long long)handler);
		assert_int_equal(op, rows[i].op);
		if (op == TRAP_PUSH)
			assert_int_equal(handler, rows[i].handler);
	}
}

/* What is no 64-bit code has none of these instructions. */
static void test_mode(void **state)
{
	const struct ptd_insn insn = { .size = 4 };
	const struct ptd_block block = { .mode = 32,
					 .n_insns = 1,
					 .bytes = (const uint8_t *)"\x41\x8f\x46\x10",
					 .insns = &insn };
	int64_t handler;

	(void)state;
	assert_int_equal(trap_op_at(&block, 0, &handler), TRAP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
