/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * FDR files made by hand
 *
 * Flight data recorder files for tests, written as text. Words are separated by blanks:
 *
 *	B	the largest bytes come first from now on
 *	h5,F,S	header of version 5, with F ticks per second and S bytes of data; or h5, h5,F
 *	x	extents of the block up to the next x or the end; x=N: N bytes
 *	b7 w3.5 p9	NewBuffer of thread 7; wall clock 3 s 5 µs; process 9
 *	c2@100 t@500	NewCPUId 2 at 100 ticks; TSCWrap at 500
 *	>1+10	10 ticks later, the entry of function 1; likewise <1+10 its exit, ~1+10 its tail
 *		exit, a1+10 its entry with arguments
 *	v42	argument
 *	e+5=hi e@700=hi y3+5=hi	custom event "hi", 5 ticks later or at 700; typed event of type 3
 *	.	EndOfBuffer
 *	k12 u1	metadata record of kind 12; function record of action 1 of function 1
 *	z5 r0aff	5 zeros; bytes in hexadecimal
 *	-3	the last 3 bytes are missing
 */

#include <stddef.h>
#include <stdint.h>

#define FDRMADE_MAX 65536

/* Make a file. Return: its size. A word that is not understood ends the program. */
size_t fdrmade_put(const char *text, uint8_t ret_bytes[static FDRMADE_MAX]);
