/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Packets
 *
 * Writes PT packets from text, one packet a line, with the names and operands of SDM volume 3,
 * chapter "Intel Processor Trace". It shares no code with the decoder or with the software source.
 * Numbers are hexadecimal unless they are said to be decimal.
 *
 *	pad | psb | psbend | ovf | stop
 *	tsc T · tma CTC FC · mtc CTC · cyc N · cbr RATIO
 *	tnt 110 (oldest first; 1: taken) · tnt64 110
 *	tip IP · tip.pge IP · tip.pgd IP · fup IP
 *		48 bits, sign-extended, whatever came before; tip16, tip32, tip48 update that many
 *		bits of the last IP, tip64 has all of it; tip0 has none (so do fup0, tip.pgd0, …)
 *	mode.exec 16|32|64 [if] · mode.tsx begin|commit|abort
 *	pip CR3 [nr] · vmcs BASE · mnt PAYLOAD
 *	ptw4 PAYLOAD [ip] · ptw8 PAYLOAD [ip]
 *	mwait HINTS EXT · pwre STATE SUB [hw] · pwrx LAST DEEPEST [interrupt|store|autonomous]
 *	exstop [ip]
 *	bbp TYPE [4] · bip ID PAYLOAD (its size is that of the last bbp) · bep [ip]
 *	cfe TYPE VECTOR [ip] · evd TYPE PAYLOAD
 *	trig TRIGGERS [ip] [more] [COUNT]
 *	bytes XX XX …
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Return: the size of the packet written to @ret_bytes; -EINVAL if @line is no packet. */
_must_check_ int packets_write(const char *line, uint8_t ret_bytes[static 64]);
