/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Newer
 *
 * The packets that libipt 2.0.5 does not know and hands to us: those of event trace (CFE, EVD) and of
 * PEBS via PT (BBP, BIP, BEP). What they say waits here until the instructions before it have been
 * given out.
 *
 * Source: SDM volume 3, chapter "Intel Processor Trace", packet definitions.
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
		uint64_t
		    next; /* offset of the packet that it belongs to: of the next address or branch */
		bool interrupts;      /* the code, at this address: */
		uint64_t ip, ip_mask; /* as far as its packet has it */
	} waiting[IPT_NEWER_MAX];
	size_t n;
	bool is_told;         /* what the event is that libipt told of */
	unsigned n_addresses; /* EXSTOP packets that stand for the end of a PEBS record */
};

/*
 * A pt_config.decode.callback for looking ahead, which writes to nothing: at a PEBS block it is an error,
 * and ipt_newer_block_size() tells how to go on.
 */
int ipt_newer_look_ahead(struct pt_packet_unknown *unknown, const struct pt_config *config,
			 const uint8_t *pos, void *context);

/* Return: bytes of the blocks of a PEBS record at @p, up to what ends them; 0 if none begins there. */
size_t ipt_newer_block_size(const uint8_t *p, size_t left);

/*
 * pt_config.decode.callback; its context is a struct ipt_newer, or NULL: then it only tells sizes.
 *
 * The items of a PEBS block look like TNT packets to whoever does not know that they are in one:
 * they are blanked, so the bytes of @config must be writable.
 */
int ipt_newer_packet(struct pt_packet_unknown *unknown, const struct pt_config *config,
		     const uint8_t *pos, void *context);
