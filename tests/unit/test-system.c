/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* System instructions, by Intel's manual, and those that look like them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>

#include "base/base.h"
#include "decoder/x86/insn.h"

static void instructions(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t size;
		bool sets_cr3, sets_vmcs, enters_vm;
	} rows[] = {
#define ROW(name, bytes, ...) { (name), (bytes), sizeof(bytes) - 1, __VA_ARGS__ }
		ROW("mov %rax,%cr3", "\x0f\x22\xd8", true, false, false),
		ROW("mov %r15,%cr3", "\x41\x0f\x22\xdf", true, false, false),
		ROW("mov %rax,%cr0", "\x0f\x22\xc0", false, false, false),
		ROW("mov %cr3,%rax", "\x0f\x20\xd8", false, false, false),
		ROW("vmptrld (%rax)", "\x0f\xc7\x30", false, true, false),
		ROW("vmptrld 16(%r8)", "\x41\x0f\xc7\x70\x10", false, true, false),
		ROW("vmptrld %gs:(%eax)", "\x65\x67\x0f\xc7\x30", false, true, false),
		ROW("vmclear (%rax)", "\x66\x0f\xc7\x30", false, false, false),
		ROW("vmxon (%rax)", "\xf3\x0f\xc7\x30", false, false, false),
		ROW("vmptrst (%rax)", "\x0f\xc7\x38", false, false, false),
		ROW("rdrand %eax", "\x0f\xc7\xf0", false, false, false),
		ROW("vmlaunch", "\x0f\x01\xc2", false, false, true),
		ROW("vmresume", "\x0f\x01\xc3", false, false, true),
		ROW("vmcall", "\x0f\x01\xc1", false, false, false),
		ROW("lea -0x3d(%rcx),%eax", "\x8d\x41\xc3", false, false, false),
		ROW("nop", "\x90", false, false, false),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint8_t *bytes = (const uint8_t *)rows[i].bytes;
		const size_t size = rows[i].size;

		if (system_sets_cr3(bytes, size) != rows[i].sets_cr3 ||
		    system_sets_vmcs(bytes, size) != rows[i].sets_vmcs ||
		    system_enters_vm(bytes, size) != rows[i].enters_vm)
			fail_msg("%s", rows[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
