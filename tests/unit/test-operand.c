/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Operand: the operands in memory relative to rip, with their sizes by Intel's manual. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "decoder/x86/operand.h"

#define DISP "\x10\x20\x30\x40"

static void operands(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t size;
		uint16_t operand_size; /* 0: none */
		bool reads, writes;
	} rows[] = {
#define ROW(name, bytes, ...) { (name), (bytes), sizeof(bytes) - 1, __VA_ARGS__ }
		ROW("mov (%rip),%eax", "\x8b\x05" DISP, 4, true, false),
		ROW("mov (%rip),%rax", "\x48\x8b\x05" DISP, 8, true, false),
		ROW("mov (%rip),%r15b", "\x44\x8a\x3d" DISP, 1, true, false),
		ROW("mov %ax,(%rip)", "\x66\x89\x05" DISP, 2, false, true),
		ROW("movl $1,(%rip)", "\xc7\x05" DISP "\1\0\0\0", 4, false, true),
		ROW("cmpb $5,(%rip)", "\x80\x3d" DISP "\5", 1, true, false),
		ROW("addl $1,(%rip)", "\x83\x05" DISP "\1", 4, true, true),
		ROW("lock cmpxchg", "\xf0\x48\x0f\xb1\x15" DISP, 8, true, true),
		ROW("xchg", "\x87\x05" DISP, 4, true, true),
		ROW("movzbl", "\x0f\xb6\x05" DISP, 1, true, false),
		ROW("movdqa (%rip),%xmm0", "\x66\x0f\x6f\x05" DISP, 16, true, false),
		ROW("vmovdqu (%rip),%ymm0", "\xc5\xfe\x6f\x05" DISP, 32, true, false),
		ROW("cvtsi2sdl", "\xf2\x0f\x2a\x05" DISP, 4, true, false),
		ROW("fldt", "\xdb\x2d" DISP, 10, true, false),
		ROW("cmove (%rip),%rax", "\x48\x0f\x44\x05" DISP, 8, true, false),
		ROW("sete (%rip)", "\x0f\x94\x05" DISP, 1, false, true),
		ROW("push (%rip)", "\xff\x35" DISP, 8, true, false),
		ROW("pop (%rip)", "\x8f\x05" DISP, 8, false, true),
		ROW("call *(%rip)", "\xff\x15" DISP, 8, true, false),
		ROW("jmp *(%rip)", "\xff\x25" DISP, 8, true, false),
		ROW("bnd jmp *(%rip)", "\xf2\xff\x25" DISP, 8, true, false),
		ROW("lea", "\x48\x8d\x05" DISP, 0, false, false),
		ROW("nopl (%rip)", "\x0f\x1f\x05" DISP, 0, false, false),
		ROW("prefetcht0", "\x0f\x18\x0d" DISP, 0, false, false),
		ROW("clflush", "\x0f\xae\x3d" DISP, 0, false, false),
		ROW("fxsave", "\x0f\xae\x05" DISP, 0, false, false),
		ROW("mov %fs:(%rip)", "\x64\x8b\x05" DISP, 0, false, false),
		ROW("mov (%eip)", "\x67\x8b\x05" DISP, 0, false, false),
		ROW("mov (%rsp)", "\x8b\x04\x24", 0, false, false),
		ROW("mov 0x40302010", "\x8b\x04\x25" DISP, 0, false, false),
		ROW("mov $0x05,%rax", "\x48\xb8\x05" DISP "\5\5\5", 0, false, false),
		ROW("too short", "\x8b\x05\x10\x20\x30", 0, false, false),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct operand operand = { .size = 77 };

		print_message("  %s\n", rows[i].name);
		assert_int_equal(
		    operand_rip((const uint8_t *)rows[i].bytes, rows[i].size, &operand),
		    rows[i].operand_size != 0);
		if (rows[i].operand_size == 0)
			continue;
		assert_int_equal(operand.disp, 0x40302010);
		assert_int_equal(operand.size, rows[i].operand_size);
		assert_int_equal(operand.reads, rows[i].reads);
		assert_int_equal(operand.writes, rows[i].writes);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(operands) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
