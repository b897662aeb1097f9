/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ipt copy
 *
 * A private copy of a span's PT bytes, at the same offsets, that libipt 2.0.5 can read. Packets
 * that it does not know (of event trace, of PEBS records, of triggers) are blanked: they become PAD
 * packets. So are those that state the TSC of a guest (see packet_is_of_tsc()), and MWAIT packets:
 * while packets are off they have no FUP, and libipt would take the next FUP for theirs, whatever
 * it belongs to. The span itself is only read.
 *
 * A blanked packet may have an address of its own in a FUP behind it. That FUP must stay, because
 * addresses that follow are compressed against it; and it needs a packet that it belongs to, or
 * libipt would take it for the beginning of an interruption. So when such a FUP comes, an EXSTOP
 * packet with an address takes the place of the blanked one. The reader of libipt's events ignores
 * those of EXSTOP packets. The same is done to a MODE.Exec packet whose FUP says that the interrupt
 * flag was changed.
 *
 * Packets are copied a window at a time. Behind the last one stands the first byte of a packet that
 * libipt does not know: it then calls the callback of its configuration, and the next window is
 * copied there and then. So a copy takes the memory of a window or two, whatever the span's size;
 * of the rest it reserves addresses only. The first windows are small, since behind an error the
 * next one may be near.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/pt/packet.h"
#include "util/window.h"

/* Bytes before the copy of the first packet, for what ipt_copy_begin() puts there. */
#define IPT_COPY_LEAD 4096u

struct ipt_copy {
	struct window window; /* over the span */
	uint64_t size;
	uint64_t n_at_once; /* bytes that are copied at a time, at most; up to twice as many if they
			     * belong together */
	uint64_t n_next;    /* bytes that are copied next */
	bool has_events;    /* event trace may be among the packets */

	uint8_t *bytes; /* behind IPT_COPY_LEAD others */
	uint64_t end;   /* packets before this offset are there */
	bool is_bad;    /* at @end, the bytes are no packet */

	struct packet_reader reader;
	bool is_guest;  /* a guest runs: set by the caller before ipt_copy_begin() */
	bool is_off;    /* packets are off */
	bool is_in_psb; /* its PSBEND, or an OVF, is to come */
	bool is_status; /* since a PSB or an OVF no address followed: what follows is repeated */
	bool waits;     /* the next FUP is of the packet at @waiting, and all that is left of it */
	bool is_mode;   /* or of a MODE.Exec there, if nothing but time lies between the two */
	uint64_t waiting; /* offset */
};

/*
 * @pt: the span, whose parts are borrowed; @window: how many bytes are copied at a time (0: as many
 * as is usual); @errata: of the CPU (enum erratum).
 *
 * Return: 0 or -ENOMEM; then, too, the copy is to be deinitialized.
 */
_must_check_ int ipt_copy_init(struct ipt_copy *copy, const struct fileparts *pt, uint64_t window,
			       uint32_t errata, bool has_events);
void ipt_copy_deinit(struct ipt_copy *copy);

/*
 * Begin anew with the packets from @offset on. Before them, in the place of bytes that have been
 * used up, go the @n bytes at @psb, a PSB+ and what may follow it, if no PSB begins at @offset.
 *
 * Return: 0, or negative errno: -ENOMEM, or why the span could not be read.
 */
_must_check_ int ipt_copy_begin(struct ipt_copy *copy, uint64_t offset, const uint8_t *psb,
				size_t n);

/*
 * Copy the next window, because libipt came to the end of what is there, at @offset. Bytes before
 * @used are not needed any more.
 *
 * Return: as ipt_copy_begin(); also -EBADMSG if there is no packet at @offset.
 */
_must_check_ int ipt_copy_go_on(struct ipt_copy *copy, uint64_t offset, uint64_t used);
