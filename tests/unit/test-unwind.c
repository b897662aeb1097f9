/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Unwinding one function, by call frame information that is made by hand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/unwind.h"

#define RBX 3
#define RBP 6
#define RAX 0

#define RSP   UINT64_C(0x7000)
#define WORDS 16

/* The words from RSP on are 0x100, 0x101, … */
static bool read_memory(void *userdata, uint64_t address, void *ret_bytes, size_t size)
{
	const uint64_t value = 0x100 + (address - RSP) / 8;

	(void)userdata;
	if (address < RSP || address - RSP >= 8 * WORDS || address % 8 != 0 || size != 8)
		return false;
	memcpy(ret_bytes, &value, size);
	return true;
}

static const struct unwind_memory memory = { .read = read_memory };

/* What compilers state for all functions: the return address is on the top of the stack. */
#define AT_CALL DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1

/* Return: the result of unwinding at @address of a function that begins at 0x1000. */
static int unwind(struct cursor common, struct cursor own, uint64_t address, uint32_t known,
		  struct unwind_frame *ret_caller)
{
	const struct ehframe_entry entry = { .start = 0x1000,
					     .end = 0x2000,
					     .code_factor = 1,
					     .data_factor = -8,
					     .return_register = 16,
					     .common = common,
					     .own = own };
	struct unwind_frame frame = { .known = known };

	for (uint64_t i = 0; i < _UNWIND_REGS; i++)
		frame.regs[i] = 0x9000 + 8 * i;
	frame.regs[UNWIND_RSP] = RSP;
	frame.regs[RBP] = RSP + 0x20;
	return unwind_frame(&entry, address, &frame, &memory, ret_caller);
}

#define BYTES(...)                                                                         \
	{                                                                                  \
		(const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }) \
	}

static void callers(void **state)
{
	const struct {
		const char *what;
		struct {
			const uint8_t *bytes;
			size_t size;
		} own;
		uint64_t address;
		int expected;
		uint64_t rip, rsp, rbp;
	} rows[] = {
		{ "at its beginning", BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16),
		  0x1000, 0, 0x100, RSP + 8, RSP + 0x20 },
		{ "behind a push", BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16), 0x1001,
		  0, 0x101, RSP + 16, RSP + 0x20 },
		{ "with RBP",
		  BYTES(DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2, DW_CFA_def_cfa_register,
			6),
		  0x1100, 0, 0x105, RSP + 0x30, 0x104 },
		{ "behind an early return",
		  BYTES(DW_CFA_def_cfa_offset, 24, DW_CFA_remember_state, DW_CFA_advance_loc1, 8,
			DW_CFA_def_cfa_offset, 8, DW_CFA_advance_loc2, 1, 0, DW_CFA_restore_state),
		  0x1009, 0, 0x102, RSP + 24, RSP + 0x20 },
		{ "at the early return",
		  BYTES(DW_CFA_def_cfa_offset, 24, DW_CFA_remember_state, DW_CFA_advance_loc1, 8,
			DW_CFA_def_cfa_offset, 8, DW_CFA_advance_loc2, 1, 0, DW_CFA_restore_state),
		  0x1008, 0, 0x100, RSP + 8, RSP + 0x20 },
		{ "a stub of the PLT",
		  BYTES(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
			DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
		  0x1000, 0, 0x100, RSP + 8, RSP + 0x20 },
		{ "a signal's frame",
		  BYTES(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xc0, 0x00, DW_OP_deref,
			DW_CFA_expression, 16, 2, DW_OP_breg7, 24, DW_CFA_expression, 6, 2,
			DW_OP_breg7, 32),
		  0x1000, 0, 0x103, 0x108, 0x104 },
		{ "the register is stated", BYTES(DW_CFA_register, 16, 3), 0x1000, 0, 0x9018,
		  RSP + 8, RSP + 0x20 },
		{ "the value is stated", BYTES(DW_CFA_val_offset, 16, 4), 0x1000, 0, RSP - 24,
		  RSP + 8, RSP + 0x20 },
		{ "restored", BYTES(DW_CFA_undefined, 16, DW_CFA_restore | 16), 0x1000, 0, 0x100,
		  RSP + 8, RSP + 0x20 },
		{ "the outermost", BYTES(DW_CFA_undefined, 16), 0x1000, UNWIND_END, 0, 0, 0 },
		{ "no return address", BYTES(DW_CFA_same_value, 16), 0x1000, -EBADMSG, 0, 0, 0 },
		{ "memory that is not known", BYTES(DW_CFA_def_cfa_offset, 0xff, 0x7f), 0x1000,
		  -EBADMSG, 0, 0, 0 },
		{ "no such instruction", BYTES(0x3f), 0x1000, -EBADMSG, 0, 0, 0 },
		{ "cut", BYTES(DW_CFA_def_cfa, 7), 0x1000, -EBADMSG, 0, 0, 0 },
		{ "nothing was remembered", BYTES(DW_CFA_restore_state), 0x1000, -EBADMSG, 0, 0,
		  0 },
		{ "a register that is not there", BYTES(DW_CFA_def_cfa, 40, 8), 0x1000, -EBADMSG, 0,
		  0, 0 },
		{ "an expression without a value", BYTES(DW_CFA_def_cfa_expression, 0), 0x1000,
		  -EBADMSG, 0, 0, 0 },
		{ "an expression that is cut", BYTES(DW_CFA_def_cfa_expression, 9, DW_OP_lit0),
		  0x1000, -EBADMSG, 0, 0, 0 },
		{ "an operation without values",
		  BYTES(DW_CFA_def_cfa_expression, 2, DW_OP_lit0, DW_OP_plus), 0x1000, -EBADMSG, 0,
		  0, 0 },
	};
	static const uint8_t at_call[] = { AT_CALL };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct unwind_frame caller = {};
		const int r = unwind(cursor_from(at_call, sizeof(at_call)),
				     cursor_from(rows[i].own.bytes, rows[i].own.size),
				     rows[i].address, (1u << _UNWIND_REGS) - 1, &caller);

		if (r != rows[i].expected || caller.regs[UNWIND_RIP] != rows[i].rip ||
		    caller.regs[UNWIND_RSP] != rows[i].rsp || caller.regs[RBP] != rows[i].rbp)
			fail_msg("%s: %d, %#lx, %#lx, %#lx", rows[i].what, r,
				 (unsigned long)caller.regs[UNWIND_RIP],
				 (unsigned long)caller.regs[UNWIND_RSP],
				 (unsigned long)caller.regs[RBP]);
	}
}

/* Registers that a function may change are not known in its caller. */
static void preserved(void **state)
{
	static const uint8_t at_call[] = { AT_CALL };
	struct unwind_frame caller = {};

	(void)state;
	assert_int_equal(unwind(cursor_from(at_call, sizeof(at_call)), cursor_from(NULL, 0), 0x1000,
				(1u << _UNWIND_REGS) - 1, &caller),
			 0);
	assert_true(caller.known >> RBX & 1);
	assert_false(caller.known >> RAX & 1);
	assert_int_equal(caller.regs[RBX], 0x9018);
	/* What is not known in the function is not known in its caller. */
	assert_int_equal(unwind(cursor_from(at_call, sizeof(at_call)), cursor_from(NULL, 0), 0x1000,
				1u << UNWIND_RSP, &caller),
			 0);
	assert_int_equal(caller.known, 1u << UNWIND_RSP | 1u << UNWIND_RIP);
	assert_int_equal(unwind(cursor_from(at_call, sizeof(at_call)), cursor_from(NULL, 0), 0x1000,
				1u << RBX, &caller),
			 -EBADMSG);
}

/* Neither rows that are remembered nor values of an expression take memory without an end. */
static void bounded(void **state)
{
	uint8_t remember[100], dup[600] = { DW_CFA_def_cfa_expression, 0xd0, 0x04, DW_OP_lit0 };
	struct unwind_frame caller;

	(void)state;
	memset(remember, DW_CFA_remember_state, sizeof(remember));
	memset(dup + 4, DW_OP_dup, sizeof(dup) - 4);
	assert_int_equal(unwind(cursor_from(remember, sizeof(remember)), cursor_from(NULL, 0),
				0x1000, UINT32_MAX, &caller),
			 -EBADMSG);
	assert_int_equal(unwind(cursor_from(dup, sizeof(dup)), cursor_from(NULL, 0), 0x1000,
				UINT32_MAX, &caller),
			 -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers),
		cmocka_unit_test(preserved),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
