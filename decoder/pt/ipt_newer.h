/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Newer
 *
 * The packets that libipt 2.0.5 does not know and hands to us: those of event trace (CFE, EVD), of
 * PEBS via PT (BBP, BIP, BEP) and of triggers (TRIG). What they say waits here until the
 * instructions before it have been given out.
 *
 * Source: SDM volume 3, chapter "Intel Processor Trace", packet definitions; of TRIG, libipt 2.2.
 */

#include <intel-pt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

#define IPT_NEWER_MAX 32 /* that wait; more at once are dropped */

struct ipt_newer {
	struct ipt_newer_mark {
		enum ptd_mark_kind kind;
		uint64_t value, extra;
		/* Offset of the packet that it belongs to: of the next address or branch. */
		uint64_t next;
		bool follows;         /* it stands behind the instruction at this address: */
		bool interrupts;      /* the code, at this address: */
		uint64_t ip, ip_mask; /* as far as its packet has it */
	} waiting[IPT_NEWER_MAX];
	size_t n;
	bool is_told; /* what the event is that libipt told of */
	bool at; /* the instruction is next that the first mark which follows one stands behind */

	/*
	 * What EXSTOP packets with an address stand for, in their order: ends of PEBS records,
	 * triggers, and addresses of what marks that wait follow.
	 */
	struct ipt_newer_mark standing[IPT_NEWER_MAX];
	size_t n_standing;
};

/*
 * A pt_config.decode.callback for looking ahead, which writes to nothing: at a PEBS block it is an
 * error, and ipt_newer_block_size() tells how to go on.
 */
int ipt_newer_look_ahead(struct pt_packet_unknown *unknown, const struct pt_config *config,
			 const uint8_t *pos, void *context);

/* Return: bytes of the blocks of a PEBS record at @p, up to what ends them; 0 if none begins
 *         there. */
size_t ipt_newer_block_size(const uint8_t *p, size_t left);

/* The instruction was taken that a mark follows. */
void ipt_newer_take_instruction(struct ipt_newer *newer);

/* Return: whether the EXSTOP packet with the address @ip stood for the mark @ret_mark; it is taken
 *         out. */
bool ipt_newer_take_standing(struct ipt_newer *newer, uint64_t ip, struct ipt_newer_mark *ret_mark);

/*
 * pt_config.decode.callback; its context is a struct ipt_newer, or NULL: then it only tells sizes.
 *
 * The items of a PEBS block look like TNT packets to whoever does not know that they are in one:
 * they are blanked, so the bytes of @config must be writable.
 */
int ipt_newer_packet(struct pt_packet_unknown *unknown, const struct pt_config *config,
		     const uint8_t *pos, void *context);
