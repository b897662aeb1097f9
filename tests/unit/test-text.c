/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Text: bytes of one instruction and how it reads. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "decoder/x86/text.h"

#define B(...)                                       \
	(uint8_t)sizeof((uint8_t[]){ __VA_ARGS__ }), \
	{                                            \
		__VA_ARGS__                          \
	}

static void formats(void **state)
{
	static const struct {
		uint8_t mode;
		uint64_t address;
		uint8_t size;
		uint8_t bytes[16];
		const char *text;
	} rows[] = {
		{ 64, 0x1000, B(0x48, 0x89, 0xe5), "mov %rsp, %rbp" },
		{ 64, 0x1000, B(0x74, 0xfe), "jz 0x1000" },
		{ 64, 0x7f0000001000, B(0xe8, 0xfb, 0x0f, 0, 0), "call 0x7f0000002000" },
		{ 64, 0xffffffff81000000, B(0xe9, 0xfb, 0xff, 0xff, 0xff),
		  "jmp 0xffffffff81000000" },
		{ 64, 0x1000, B(0x48, 0x8b, 0x05, 0xab, 0, 0, 0), "mov 0xab(%rip), %rax" },
		{ 64, 0x1000, B(0xc3), "ret" },
		{ 64, 0x1000, B(0xf2, 0x0f, 0x01, 0xca), "erets" },
		{ 64, 0x1000, B(0xf3, 0x0f, 0x01, 0xca), "eretu" },
		{ 64, 0x1000, B(0xd5, 0x00, 0xa1, 0x10, 0x20, 0x40, 0, 0, 0, 0, 0x80),
		  "jmpabs 0x8000000000402010" },
		{ 32, 0x1000, B(0xe8, 0xfb, 0xff, 0xff, 0xff), "call 0x1000" },
		{ 32, 0x1000, B(0x40), "inc %eax" },
		{ 32, 0xf7fd0001, B(0xe8, 0xfa, 0x7f, 0x07, 0x10), "call 0x8048000" },
		{ 32, 0x8048001, B(0xe9, 0x00, 0x80, 0xf8, 0xef), "jmp 0xf7fd0006" },
		{ 32, 0x10, B(0x74, 0x80), "jz 0xffffff92" },
		{ 32, 0x401004, B(0x66, 0xe9, 0xf8, 0xff), "jmp 0x1000" },
		{ 64, 0x1000, B(0xc4, 0xe2, 0x79, 0xe6, 0x00), "(unknown)" },
		{ 64, 0x1000, B(0x0f, 0x1a, 0x05, 1, 0, 0, 0), "nop 0x1(%rip)" },
		{ 64, 0x1000, B(0xf3, 0x0f, 0x1a, 0xc0), "bndcl %rax, %bnd0" },
		{ 16, 0x1000, B(0xe9, 0xfd, 0xff), "jmp 0x1000" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[TEXT_MAX] = "";

		assert_int_equal(
		    text_format(rows[i].mode, rows[i].address, rows[i].bytes, rows[i].size, text),
		    strlen(rows[i].text));
		assert_string_equal(text, rows[i].text);

		assert_int_equal(text_format(rows[i].mode, rows[i].address, rows[i].bytes,
					     rows[i].size - 1u, text),
				 0);
		assert_string_equal(text, "(bad)");
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
