/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Insn: each row is the bytes of one instruction and what must be known of it. Every row is also
 * tried with its last byte cut off, which must be refused, and with more bytes behind it, which
 * must not matter.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "decoder/x86/insn.h"

#define FAR 1
#define REP 2

struct row {
	const char *name;
	uint8_t mode;
	uint8_t size;
	uint8_t bytes[16];
	uint8_t class;
	uint8_t flags;
	int64_t disp;
};

#define B(...)                                       \
	(uint8_t)sizeof((uint8_t[]){ __VA_ARGS__ }), \
	{                                            \
		__VA_ARGS__                          \
	}

/* clang-format off */
static const struct row rows[] = {
	{ "nop", 64, B(0x90), PTD_INSN_OTHER, 0, 0 },
	{ "mov r/m, imm32", 64, B(0x48, 0xc7, 0x05, 1, 2, 3, 4, 5, 6, 7, 8), PTD_INSN_OTHER, 0, 0 },
	{ "movabs", 64, B(0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8), PTD_INSN_OTHER, 0, 0 },
	{ "endbr64", 64, B(0xf3, 0x0f, 0x1e, 0xfa), PTD_INSN_OTHER, 0, 0 },
	{ "rdsspq", 64, B(0xf3, 0x48, 0x0f, 0x1e, 0xc8), PTD_INSN_OTHER, 0, 0 },
	{ "long nop", 64, B(0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0), PTD_INSN_OTHER, 0, 0 },
	{ "ud2", 64, B(0x0f, 0x0b), PTD_INSN_OTHER, 0, 0 },
	{ "ud1", 64, B(0x0f, 0xb9, 0xc0), PTD_INSN_OTHER, 0, 0 },
	{ "ud0", 64, B(0x0f, 0xff, 0xc0), PTD_INSN_OTHER, 0, 0 },
	{ "xbegin", 64, B(0xc7, 0xf8, 1, 0, 0, 0), PTD_INSN_OTHER, 0, 0 },
	{ "xabort", 64, B(0xc6, 0xf8, 1), PTD_INSN_OTHER, 0, 0 },
	{ "xend", 64, B(0x0f, 0x01, 0xd5), PTD_INSN_OTHER, 0, 0 },
	{ "rdpid", 64, B(0xf3, 0x0f, 0xc7, 0xf8), PTD_INSN_OTHER, 0, 0 },
	{ "hlt", 64, B(0xf4), PTD_INSN_OTHER, 0, 0 },
	{ "ptwrite", 64, B(0xf3, 0x48, 0x0f, 0xae, 0xe0), PTD_INSN_PTWRITE, 0, 0 },
	{ "evex add", 64, B(0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc1), PTD_INSN_OTHER, 0, 0 },
	{ "vzeroupper", 64, B(0xc5, 0xf8, 0x77), PTD_INSN_OTHER, 0, 0 },

	{ "aadd", 64, B(0x0f, 0x38, 0xfc, 0x90, 1, 2, 3, 4), PTD_INSN_OTHER, 0, 0 },
	{ "axor, sib and disp32", 64, B(0xf3, 0x0f, 0x38, 0xfc, 0x04, 0x25, 1, 2, 3, 4), PTD_INSN_OTHER, 0, 0 },
	{ "aand, 32-bit address", 64, B(0x67, 0x66, 0x0f, 0x38, 0xfc, 0x40, 1), PTD_INSN_OTHER, 0, 0 },
	{ "cmpbexadd", 64, B(0xc4, 0xe2, 0x79, 0xe6, 0x00), PTD_INSN_OTHER, 0, 0 },
	{ "vpdpbssd, rip", 64, B(0xc4, 0xe2, 0x7b, 0x50, 0x05, 1, 2, 3, 4), PTD_INSN_OTHER, 0, 0 },
	{ "vsm3rnds2, imm8", 64, B(0xc4, 0xe3, 0x79, 0xde, 0xc1, 7), PTD_INSN_OTHER, 0, 0 },
	{ "urdmsr, imm32", 64, B(0xc4, 0xe7, 0x7b, 0xf8, 0xc0, 1, 2, 3, 4), PTD_INSN_OTHER, 0, 0 },
	{ "evex map 5", 64, B(0x62, 0xf5, 0x7d, 0x48, 0x6e, 0x44, 0x24, 1), PTD_INSN_OTHER, 0, 0 },
	{ "wrmsrns", 64, B(0x0f, 0x01, 0xc6), PTD_INSN_OTHER, 0, 0 },
	{ "rdmsrlist", 64, B(0xf2, 0x0f, 0x01, 0xc6), PTD_INSN_OTHER, 0, 0 },
	{ "lkgs", 64, B(0xf2, 0x0f, 0x00, 0xf0), PTD_INSN_OTHER, 0, 0 },
	{ "eretu", 64, B(0xf3, 0x0f, 0x01, 0xca), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "erets", 64, B(0xf2, 0x0f, 0x01, 0xca), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "erets with more prefixes", 64, B(0x66, 0xf3, 0x48, 0xf2, 0x0f, 0x01, 0xca), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "clac", 64, B(0x0f, 0x01, 0xca), PTD_INSN_OTHER, 0, 0 },
	{ "jmpabs", 64, B(0xd5, 0x00, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8), PTD_INSN_JUMP_INDIRECT, 0, 0 },
	{ "aad, which is no jmpabs", 32, B(0xd5, 0x00), PTD_INSN_OTHER, 0, 0 },
	{ "vpdpbssd, [bx+disp8]", 16, B(0xc4, 0xe2, 0x7b, 0x50, 0x47, 1), PTD_INSN_OTHER, 0, 0 },
	{ "vpdpbssd, [disp16]", 16, B(0xc4, 0xe2, 0x7b, 0x50, 0x06, 1, 2), PTD_INSN_OTHER, 0, 0 },
	{ "vpdpbssd, [disp16]", 32, B(0x67, 0xc4, 0xe2, 0x7b, 0x50, 0x06, 1, 2), PTD_INSN_OTHER, 0, 0 },
	{ "vpdpbssd, disp32", 32, B(0xc4, 0xe2, 0x7b, 0x50, 0x05, 1, 2, 3, 4), PTD_INSN_OTHER, 0, 0 },

	{ "nop, no form of MPX", 64, B(0x0f, 0x1a, 0x05, 1, 2, 3, 4), PTD_INSN_OTHER, 0, 0 },
	{ "nop, no form of MPX, register", 64, B(0x0f, 0x1b, 0xc4), PTD_INSN_OTHER, 0, 0 },
	{ "nop, no form of MPX, 16-bit address", 32, B(0x67, 0x0f, 0x1a, 0x46, 1), PTD_INSN_OTHER, 0, 0 },
	{ "bndmk", 64, B(0xf3, 0x0f, 0x1b, 0x04, 0x08), PTD_INSN_OTHER, 0, 0 },
	{ "bndmov", 64, B(0x66, 0x0f, 0x1a, 0x45, 0xf0), PTD_INSN_OTHER, 0, 0 },
	{ "bndcl", 64, B(0xf3, 0x0f, 0x1a, 0xc0), PTD_INSN_OTHER, 0, 0 },
	{ "bndstx", 64, B(0x0f, 0x1b, 0x44, 0x10, 1), PTD_INSN_OTHER, 0, 0 },
	{ "shl, the form /6", 64, B(0xc0, 0x30, 1), PTD_INSN_OTHER, 0, 0 },
	{ "ud1 with memory", 64, B(0x0f, 0xb9, 0x40, 1), PTD_INSN_OTHER, 0, 0 },
	{ "evex add, rounding", 64, B(0x62, 0xf1, 0x7c, 0x58, 0x58, 0xc1), PTD_INSN_OTHER, 0, 0 },
	{ "evex map 6", 64, B(0x62, 0xf6, 0x7d, 0x48, 0x98, 0x44, 0x24, 1), PTD_INSN_OTHER, 0, 0 },
	{ "tdpbf8ps", 64, B(0xc4, 0xe5, 0x78, 0xfd, 0xd1), PTD_INSN_OTHER, 0, 0 },
	{ "xop", 64, B(0x8f, 0xe9, 0x78, 0xe1, 0xc0), PTD_INSN_OTHER, 0, 0 },
	{ "tdcall", 64, B(0x66, 0x0f, 0x01, 0xcc), PTD_INSN_VM, 0, 0 },
	{ "seamret", 64, B(0x66, 0x0f, 0x01, 0xcd), PTD_INSN_VM, 0, 0 },
	{ "seamcall", 64, B(0x66, 0x0f, 0x01, 0xcf), PTD_INSN_VM, 0, 0 },
	{ "rsm", 64, B(0x0f, 0xaa), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "rsm", 32, B(0x0f, 0xaa), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "bound, a fault", 32, B(0x62, 0x00), PTD_INSN_OTHER, 0, 0 },
	{ "data16 je keeps rel32", 64, B(0x66, 0x0f, 0x84, 1, 0, 0, 0), PTD_INSN_JUMP_COND, 0, 1 },
	{ "data16 jo keeps rel32", 64, B(0x66, 0x0f, 0x80, 1, 0, 0, 0), PTD_INSN_JUMP_COND, 0, 1 },
	{ "data16 call keeps rel32", 64, B(0x66, 0xe8, 1, 0, 0, 0), PTD_INSN_CALL, 0, 1 },
	{ "call, padded", 64, B(0x2e, 0xe8, 5, 0, 0, 0), PTD_INSN_CALL, 0, 5 },
	{ "data16 jmp rel8", 64, B(0x66, 0xeb, 0xfe), PTD_INSN_JUMP, 0, -2 },
	{ "data16 ret", 64, B(0x66, 0xc3), PTD_INSN_RETURN, 0, 0 },
	{ "je rel16", 32, B(0x66, 0x0f, 0x84, 1, 0), PTD_INSN_JUMP_COND, 0, 1 },
	{ "call rel16", 32, B(0x66, 0xe8, 1, 0), PTD_INSN_CALL, 0, 1 },

	{ "jmp rel8", 64, B(0xeb, 0xfe), PTD_INSN_JUMP, 0, -2 },
	{ "jmp rel32", 64, B(0xe9, 0xff, 0xff, 0xff, 0x7f), PTD_INSN_JUMP, 0, 0x7fffffff },
	{ "jmp rel32 back", 64, B(0xe9, 0x00, 0x00, 0x00, 0x80), PTD_INSN_JUMP, 0, -0x80000000LL },
	{ "bnd jmp", 64, B(0xf2, 0xe9, 1, 0, 0, 0), PTD_INSN_JUMP, 0, 1 },
	{ "data16 jmp keeps rel32", 64, B(0x66, 0xe9, 1, 0, 0, 0), PTD_INSN_JUMP, 0, 1 },
	{ "jmp reg", 64, B(0xff, 0xe0), PTD_INSN_JUMP_INDIRECT, 0, 0 },
	{ "notrack jmp reg", 64, B(0x3e, 0xff, 0xe0), PTD_INSN_JUMP_INDIRECT, 0, 0 },
	{ "bnd jmp mem", 64, B(0xf2, 0xff, 0x25, 1, 2, 3, 4), PTD_INSN_JUMP_INDIRECT, 0, 0 },
	{ "jmp far mem", 64, B(0xff, 0x28), PTD_INSN_JUMP_INDIRECT, FAR, 0 },
	{ "rex jmp far mem", 64, B(0x48, 0xff, 0x2d, 1, 2, 3, 4), PTD_INSN_JUMP_INDIRECT, FAR, 0 },
	{ "je rel8", 64, B(0x74, 0x80), PTD_INSN_JUMP_COND, 0, -128 },
	{ "je with hint", 64, B(0x3e, 0x74, 0x02), PTD_INSN_JUMP_COND, 0, 2 },
	{ "bnd je", 64, B(0xf2, 0x74, 0x02), PTD_INSN_JUMP_COND, 0, 2 },
	{ "jg rel32", 64, B(0x0f, 0x8f, 0xfe, 0xff, 0xff, 0xff), PTD_INSN_JUMP_COND, 0, -2 },
	{ "loop", 64, B(0xe2, 0xfc), PTD_INSN_JUMP_COND, 0, -4 },
	{ "loope", 64, B(0xe1, 0xfc), PTD_INSN_JUMP_COND, 0, -4 },
	{ "loopne", 64, B(0xe0, 0xfc), PTD_INSN_JUMP_COND, 0, -4 },
	{ "jrcxz", 64, B(0xe3, 0x10), PTD_INSN_JUMP_COND, 0, 16 },
	{ "jecxz", 64, B(0x67, 0xe3, 0x10), PTD_INSN_JUMP_COND, 0, 16 },
	{ "call rel32", 64, B(0xe8, 0xfb, 0xff, 0xff, 0xff), PTD_INSN_CALL, 0, -5 },
	{ "bnd call", 64, B(0xf2, 0xe8, 5, 0, 0, 0), PTD_INSN_CALL, 0, 5 },
	{ "data16 data16 rex call", 64, B(0x66, 0x66, 0x48, 0xe8, 5, 0, 0, 0), PTD_INSN_CALL, 0, 5 },
	{ "call reg", 64, B(0x41, 0xff, 0xd3), PTD_INSN_CALL_INDIRECT, 0, 0 },
	{ "call mem", 64, B(0xff, 0x15, 1, 2, 3, 4), PTD_INSN_CALL_INDIRECT, 0, 0 },
	{ "call far mem", 64, B(0xff, 0x18), PTD_INSN_CALL_INDIRECT, FAR, 0 },
	{ "ret", 64, B(0xc3), PTD_INSN_RETURN, 0, 0 },
	{ "rep ret", 64, B(0xf3, 0xc3), PTD_INSN_RETURN, 0, 0 },
	{ "bnd ret", 64, B(0xf2, 0xc3), PTD_INSN_RETURN, 0, 0 },
	{ "ret imm16", 64, B(0xc2, 8, 0), PTD_INSN_RETURN, 0, 0 },
	{ "retf", 64, B(0xcb), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "retf imm16", 64, B(0xca, 8, 0), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "iretq", 64, B(0x48, 0xcf), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "iretd", 64, B(0xcf), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "sysretq", 64, B(0x48, 0x0f, 0x07), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "sysexit", 64, B(0x0f, 0x35), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "uiret", 64, B(0xf3, 0x0f, 0x01, 0xec), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "syscall", 64, B(0x0f, 0x05), PTD_INSN_SYSCALL, 0, 0 },
	{ "sysenter", 64, B(0x0f, 0x34), PTD_INSN_SYSENTER, 0, 0 },
	{ "int n", 64, B(0xcd, 0x80), PTD_INSN_INTERRUPT, 0, 0 },
	{ "int3", 64, B(0xcc), PTD_INSN_INTERRUPT, 0, 0 },
	{ "int1", 64, B(0xf1), PTD_INSN_INTERRUPT, 0, 0 },
	{ "vmcall", 64, B(0x0f, 0x01, 0xc1), PTD_INSN_VM, 0, 0 },
	{ "vmlaunch", 64, B(0x0f, 0x01, 0xc2), PTD_INSN_VM, 0, 0 },
	{ "vmresume", 64, B(0x0f, 0x01, 0xc3), PTD_INSN_VM, 0, 0 },

	{ "rep movsb", 64, B(0xf3, 0xa4), PTD_INSN_OTHER, REP, 0 },
	{ "rep movsq", 64, B(0xf3, 0x48, 0xa5), PTD_INSN_OTHER, REP, 0 },
	{ "repne movsb", 64, B(0xf2, 0xa4), PTD_INSN_OTHER, REP, 0 },
	{ "movsb", 64, B(0xa4), PTD_INSN_OTHER, 0, 0 },
	{ "repe cmpsb", 64, B(0xf3, 0xa6), PTD_INSN_OTHER, REP, 0 },
	{ "repne scasb", 64, B(0xf2, 0xae), PTD_INSN_OTHER, REP, 0 },
	{ "rep stosd", 64, B(0xf3, 0xab), PTD_INSN_OTHER, REP, 0 },
	{ "rep lodsb", 64, B(0xf3, 0xac), PTD_INSN_OTHER, REP, 0 },
	{ "rep insb", 64, B(0xf3, 0x6c), PTD_INSN_OTHER, REP, 0 },
	{ "rep outsb", 64, B(0xf3, 0x6e), PTD_INSN_OTHER, REP, 0 },
	{ "rep with other prefixes", 64, B(0x67, 0xf3, 0x66, 0xab), PTD_INSN_OTHER, REP, 0 },
	{ "pause", 64, B(0xf3, 0x90), PTD_INSN_OTHER, 0, 0 },
	{ "movsd of sse", 64, B(0xf2, 0x0f, 0x10, 0xc1), PTD_INSN_OTHER, 0, 0 },
	{ "cmpsd of sse", 64, B(0xf2, 0x0f, 0xc2, 0xc1, 0), PTD_INSN_OTHER, 0, 0 },

	{ "jmp rel32", 32, B(0xe9, 1, 0, 0, 0), PTD_INSN_JUMP, 0, 1 },
	{ "jmp rel16", 32, B(0x66, 0xe9, 0xff, 0xff), PTD_INSN_JUMP, 0, -1 },
	{ "jmp ptr16:32", 32, B(0xea, 1, 2, 3, 4, 5, 6), PTD_INSN_JUMP, FAR, 0 },
	{ "call ptr16:32", 32, B(0x9a, 1, 2, 3, 4, 5, 6), PTD_INSN_CALL, FAR, 0 },
	{ "call rel32", 32, B(0xe8, 0xfb, 0xff, 0xff, 0xff), PTD_INSN_CALL, 0, -5 },
	{ "jne rel32", 32, B(0x0f, 0x85, 1, 0, 0, 0), PTD_INSN_JUMP_COND, 0, 1 },
	{ "jecxz", 32, B(0xe3, 0x10), PTD_INSN_JUMP_COND, 0, 16 },
	{ "jcxz", 32, B(0x67, 0xe3, 0x10), PTD_INSN_JUMP_COND, 0, 16 },
	{ "into", 32, B(0xce), PTD_INSN_INTERRUPT, 0, 0 },
	{ "inc eax, no rex", 32, B(0x48), PTD_INSN_OTHER, 0, 0 },
	{ "iretd", 32, B(0xcf), PTD_INSN_RETURN_FAR, FAR, 0 },
	{ "mov moffs", 32, B(0xa1, 1, 2, 3, 4), PTD_INSN_OTHER, 0, 0 },

	{ "jmp rel16", 16, B(0xe9, 0xfd, 0xff), PTD_INSN_JUMP, 0, -3 },
	{ "jmp rel32", 16, B(0x66, 0xe9, 0xfa, 0xff, 0xff, 0xff), PTD_INSN_JUMP, 0, -6 },
	{ "jmp ptr16:16", 16, B(0xea, 1, 2, 3, 4), PTD_INSN_JUMP, FAR, 0 },
	{ "call rel16", 16, B(0xe8, 1, 0), PTD_INSN_CALL, 0, 1 },
	{ "je rel16", 16, B(0x0f, 0x84, 1, 0), PTD_INSN_JUMP_COND, 0, 1 },
	{ "int 10h", 16, B(0xcd, 0x10), PTD_INSN_INTERRUPT, 0, 0 },
	{ "mov r16, [bx+si+disp16]", 16, B(0x8b, 0x80, 1, 2), PTD_INSN_OTHER, 0, 0 },
	{ "ret", 16, B(0xc3), PTD_INSN_RETURN, 0, 0 },
};
/* clang-format on */

static void check(const struct row *row, const struct insn *insn)
{
	assert_int_equal(insn->size, row->size);
	assert_int_equal(insn->class, row->class);
	assert_int_equal(insn->far, !!(row->flags & FAR));
	assert_int_equal(insn->rep, !!(row->flags & REP));
	assert_true(insn->disp == row->disp);
}

static void decodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		uint8_t more[32];
		struct insn insn = { .size = 99 };

		print_message("  %u: %s\n", row->mode, row->name);
		assert_int_equal(insn_decode(row->mode, row->bytes, row->size - 1u, &insn),
				 -EBADMSG);
		assert_int_equal(insn.size, 99);

		assert_int_equal(insn_decode(row->mode, row->bytes, row->size, &insn), 0);
		check(row, &insn);

		memset(more, 0xff, sizeof(more));
		memcpy(more, row->bytes, row->size);
		insn = (struct insn){};
		assert_int_equal(insn_decode(row->mode, more, sizeof(more), &insn), 0);
		check(row, &insn);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *name;
		uint8_t mode;
		uint8_t size;
		uint8_t bytes[16];
	} bad[] = {
		{ "nothing", 64, 0, { 0 } },
		{ "push cs in 64-bit mode", 64, B(0x0e) },
		{ "into in 64-bit mode", 64, B(0xce) },
		{ "jmp ptr16:32 in 64-bit mode", 64, B(0xea, 1, 2, 3, 4, 5, 6) },
		{ "only prefixes", 64, B(0x66, 0x66, 0x66) },
		{ "16 bytes long", 64,
		  B(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
		    0x66, 0x66, 0x90) },
		{ "eretu in 32-bit code", 32, B(0xf3, 0x0f, 0x01, 0xca) },
		{ "erets in 16-bit code", 16, B(0xf2, 0x0f, 0x01, 0xca) },
		{ "jmpabs with a prefix", 64, B(0x66, 0xd5, 0x00, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8) },
		{ "another rex2", 64, B(0xd5, 0x08, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8) },
		{ "call by rex2", 64, B(0xd5, 0x11, 0xff, 0xd0) },
		{ "evex map 4", 64, B(0x62, 0xf4, 0xfc, 0x18, 0xff, 0xf0) },
		{ "vex map 9", 64, B(0xc4, 0xe9, 0x79, 0xe6, 0x00) },
		{ "two-byte opcode that is none", 64, B(0x0f, 0x04, 0xc0) },
		{ "lock on what cannot be locked", 64, B(0xf0, 0x90) },
		{ "no such mode", 8, B(0x90) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct insn insn = { .size = 99 };

		print_message("  %s\n", bad[i].name);
		assert_int_equal(insn_decode(bad[i].mode, bad[i].bytes, bad[i].size, &insn),
				 -EBADMSG);
		assert_int_equal(insn.size, 99);
	}
}

static void cuts_targets(void **state)
{
	static const struct {
		uint8_t mode;
		uint8_t size;
		uint8_t bytes[16];
		uint64_t target, is;
	} targets[] = {
		{ 64, B(0x66, 0xeb, 0x10), 0x123456789a, 0x123456789a },
		{ 32, B(0xe8, 1, 2, 3, 4), 0x108048000, 0x8048000 },
		{ 32, B(0xeb, 0x10), UINT64_C(0xfffffffffffffff0), 0xfffffff0 },
		{ 32, B(0x66, 0xeb, 0x10), 0x401013, 0x1013 },
		{ 32, B(0x2e, 0x66, 0x74, 0x10), 0x401014, 0x1014 },
		{ 32, B(0xe9, 0x66, 0, 0, 0), 0x40106b, 0x40106b },
		{ 16, B(0x66, 0xe9, 1, 0, 0, 0), 0x12345, 0x12345 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		assert_int_equal(insn_target(targets[i].mode, targets[i].bytes, targets[i].size,
					     targets[i].target),
				 targets[i].is);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes),
		cmocka_unit_test(refuses),
		cmocka_unit_test(cuts_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
