/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mark
 *
 * A mark in a program costs one nop, and needs no library. What records the program's instructions
 * (ptd, or any Intel PT) shows each time at which it was executed: ptdecode probes. It is a static
 * probe of SystemTap's format (USDT, <sys/sdt.h>) without arguments, so that gdb, perf and bpftrace
 * know it, too.
 *
 *	PTD_MARK(server, request__start);
 *
 * Provider and name are written as identifiers. For C and C++ on x86 with GNU assembler syntax.
 */

#ifdef __LP64__
#define PTD_MARK_ADDRESS_ ".8byte"
#else
#define PTD_MARK_ADDRESS_ ".4byte"
#endif

/* A note (type 3 of "stapsdt"): the sizes of its name and text; the text is three addresses, that
 * of the nop, of the section .stapsdt.base, by which tools see that a file was moved, and of no
 * semaphore; and three strings. The section is there once in a file, whoever defines it. */
#define PTD_MARK(provider, name)                                                       \
	__asm__ __volatile__("1:	nop\n"                                                \
			     "	.pushsection .note.stapsdt, \"?\", @note\n"             \
			     "	.balign 4\n"                                            \
			     "	.4byte 8, 3f - 2f, 3\n"                                 \
			     "	.asciz \"stapsdt\"\n"                                   \
			     "2:	" PTD_MARK_ADDRESS_ " 1b, _.stapsdt.base, 0\n" \
			     "	.asciz \"" #provider "\"\n"                            \
			     "	.asciz \"" #name "\"\n"                                \
			     "	.asciz \"\"\n"                                          \
			     "3:	.balign 4\n"                                          \
			     "	.popsection\n"                                          \
			     "	.ifndef _.stapsdt.base\n"                               \
			     "	.pushsection .stapsdt.base, \"aG\", @progbits, "        \
			     ".stapsdt.base, comdat\n"                                 \
			     "	.weak _.stapsdt.base\n"                                 \
			     "	.hidden _.stapsdt.base\n"                               \
			     "_.stapsdt.base:\n"                                       \
			     "	.byte 0\n"                                              \
			     "	.popsection\n"                                          \
			     "	.endif\n")
