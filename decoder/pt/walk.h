/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Walk
 *
 * One walk over the PT packets of a span. It reads them through a window (util/window.h), so its
 * memory does not grow with the span. It needs no code and writes to nothing.
 *
 * The walk yields branches and events, in the order of the packets. Everything else that packets
 * say is kept as state: the time, the last address, the mode of the code, the page table. An
 * engine calls walk_ahead(), which passes over packets that only change the state, and says what
 * comes next. Then the engine takes it, by walk_take_tnt(), walk_take_tip() or walk_take_event().
 *
 * A branch (TNT, TIP) says where the next instruction leads that can lead to more than one place.
 * An event says what happened, and at which place in the code (enum walk_place).
 *
 * Several packets can make one event. An interruption, for example, is a FUP with the address where
 * it happened, perhaps a MODE.Exec and a PIP, and a TIP with the address where execution goes on.
 * So an event that needs a FUP or a TIP waits for it in a queue (walk->fup, walk->tip). The packets
 * of a PSB+ wait for its PSBEND. When the packet has come that events waited for, they become
 * ready, and come next whatever packet follows.
 *
 * How to add a packet: suppose that a CPU writes a packet when its fan stops, and may write a FUP
 * behind it, with the address of the instruction before which that happened.
 *
 *	1. packet.h gets PACKET_FAN, and says what its fields mean. packet.c gets a line in
 *	   @ext_forms with its opcode, its size, and where its fields lie: the bit of the opcode
 *	   that says whether a FUP follows becomes @flag.
 *	2. include/ptd/record.h gets PTD_MARK_FAN, which is what users see.
 *	3. walk.c gets a line in @meanings, the table of the events that packets make:
 *		[PACKET_FAN] = { WALK_MARK, PTD_MARK_FAN, WALK_HERE, WALK_HERE },
 *	   Such an event waits for the FUP if @flag is set, and the FUP's address becomes its place;
 *	   otherwise it comes at once. An event that comes at another time has a case in
 *	   take_packet(): if its packet always has a FUP, beside PACKET_MWAIT.
 *	4. If the packet may stand in a PSB+ and behind an overflow, and changes nothing of the flow
 *	   of code, PACKETS_OF_REPORTS in packet.h lists it.
 *	5. The engines need no change: an event of kind WALK_MARK becomes a mark of the stream.
 *	6. tests/lib/packets.c learns to write the packet, test-packet and test-walk get a row each,
 *	   and a golden case shows it in the stream (tests/golden/coverage).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "decoder/pt/errata.h"
#include "decoder/pt/packet.h"
#include "decoder/pt/tsc.h"
#include "ptd/record.h"
#include "util/window.h"

/* No more events wait for one packet, and no more notes, unless packets are broken. */
#define WALK_QUEUE_MAX 8
#define WALK_NOTES_MAX 32

enum walk_next {
	WALK_TNT,
	WALK_TIP,   /* of a branch, not of an event */
	WALK_EVENT, /* see walk_take_event() */
	WALK_END,
	WALK_ERROR, /* packets make no sense from walk->offset on: see walk->error */
	WALK_ON,    /* only inside of the walk: the packet has changed its state, go on */
};

enum walk_kind {
	WALK_ENABLED,        /* packets are on from here, execution is at @ip */
	WALK_DISABLED,       /* packets are off: control left by an instruction (to @ip) */
	WALK_ASYNC,          /* interrupted before @ip, goes on at @to */
	WALK_ASYNC_DISABLED, /* interrupted before @ip, packets are off */
	WALK_OVERFLOW,       /* packets were lost; they are on if there is an @ip */
	WALK_MODE,           /* code is @value bits wide from here on */
	WALK_TSX,            /* @value: PACKET_TSX_… */
	WALK_PAGING,         /* another page table, @value; @extra: of a guest */
	WALK_VMCS,           /* another VMCS, @value */
	WALK_MARK,           /* of kind @mark, with @value and @extra */
	WALK_NOTHING,        /* nothing happened, but @ip was reached */
	WALK_JOIN,           /* the PSB+ at walk->join is over; it begins at offset @value */
};

/* Where in the code an event belongs. While packets are off, no code is seen: WALK_HERE. */
enum walk_place {
	WALK_HERE,
	WALK_BEFORE, /* the instruction at @ip */
	WALK_BEHIND, /* the instruction at @ip */
	WALK_NEXT,   /* behind the next instruction that can cause such an event */
};

struct walk_event {
	enum walk_kind kind;
	enum walk_place place;
	enum ptd_mark_kind mark;
	bool has_ip;
	bool is_status; /* a PSB+ repeats it, and it may be known already */
	uint64_t ip, to;
	uint64_t value, extra;
	uint64_t fup;    /* offset of an interruption's FUP */
	uint64_t t;      /* TSC at its first packet; 0: not known */
	uint64_t now;    /* and at the packet that completed it: the time of the code behind it */
	uint64_t offset; /* of the packet that completed it */
	uint64_t end;    /* behind that packet */
};

struct walk_queue {
	struct walk_event items[WALK_QUEUE_MAX + 1]; /* the last one is for a WALK_JOIN */
	size_t n;
};

/*
 * What event trace says of the packet that follows: a CFE without an address, or an EVD. It
 * becomes a mark when the engine has reached what that packet leads to.
 */
struct walk_note {
	enum ptd_mark_kind kind;
	uint64_t value, extra;
	uint64_t offset;
	uint64_t next;   /* offset of that packet, once it is known; else UINT64_MAX */
	bool interrupts; /* it is the cause of the interruption that follows */
};

/* What a PSB+ repeats. */
struct walk_state {
	uint8_t mode; /* 0: not known */
	uint64_t tsx;
	uint64_t cr3, non_root, vmcs, cbr;
	bool has_cr3, has_vmcs;
};

/* A packet that says where execution is, found behind an error. */
struct walk_point {
	uint64_t offset; /* behind it */
	uint64_t ip;
	bool asks; /* packets since the error state a time, or another page table */
};

struct walk {
	struct window window; /* where packets are read */
	struct window ahead;  /* where later packets are looked at (peek.h) */
	uint64_t size;
	uint64_t offset;    /* of the next packet */
	uint64_t quick;     /* below it TNT and TIP packets may be taken by their bytes alone */
	uint64_t quick_max; /* set by the engine: @quick is never more than this */
	uint64_t join;      /* set by the engine: at the PSB at this offset the walk begins anew */
	bool has_events;    /* event trace may be among the packets */

	struct packet_reader reader;
	struct packet packet; /* the next one, when walk_ahead() has found a branch or an event */
	enum walk_next next;  /* what walk_ahead() has found at this offset: */
	uint64_t next_at;
	enum ptd_gap_reason error;

	bool enabled;
	uint64_t last_ip;
	struct tsc tsc;
	bool is_timed; /* a packet has given the time of the stretch that runs (peek.h) */
	bool leads;    /* the packets right before the next one state its time */
	struct walk_state state;

	struct walk_queue fup, tip, psb; /* events that wait for these */
	bool has_waiting;                /* the packets from this offset on wait for a later one: */
	uint64_t waiting;
	struct walk_queue ready; /* those that come next, whatever the next packet is */
	uint64_t ready_from;     /* offset of the packet that made them ready */
	bool psb_has_ip;
	uint64_t recovered; /* walk_recover() does not go on again at a FUP before this offset */
	bool is_status; /* no address has followed the last PSB or OVF: modes are only repeated */
	bool follows_mode; /* the last packet, but for those of time, was a MODE.Exec */

	struct walk_note notes[WALK_NOTES_MAX];
	size_t n_notes;
};

struct walk_config {
	struct fileparts pt;
	size_t window; /* how many bytes of @pt are in memory at once; 0: as many as is usual */
	uint32_t errata;
	uint8_t mtc_freq, nom_freq;
	uint32_t cpuid_15_eax, cpuid_15_ebx;
	bool has_events;
};

/* How few bytes of the PT may be in memory at once. */
#define WALK_WINDOW_MIN 32

/* Begin on the PT of @config, whose parts are borrowed. */
void walk_init(struct walk *walk, const struct walk_config *config);
void walk_deinit(struct walk *walk);

/*
 * Return: negative errno if PT could not be read, as of fileparts_read() and -ENOMEM; else 0. Then
 *         the walk behaves as if the PT ended there.
 */
static inline int walk_read_error(const struct walk *walk)
{
	return walk->window.error ?: walk->ahead.error;
}

/*
 * Go to the next PSB from @from on, if its PSB+ makes no sense: the PSBEND is missing, which Xen is
 * known for. Packets begin behind the PSB all the same, so that walk_recover() can go on there.
 *
 * Return: whether it makes none; @ret_offset is where it begins, the size of the PT if there is no
 *         PSB.
 */
_must_check_ bool walk_sync_broken(struct walk *walk, uint64_t from, uint64_t *ret_offset);

/*
 * Go to the next PSB from @from on whose PSB+ makes sense, and begin anew there.
 *
 * Return: whether there is one; @ret_offset is where it begins, @ret_has_ip whether it says where
 *         execution is: at walk->last_ip.
 */
_must_check_ bool walk_sync(struct walk *walk, uint64_t from, uint64_t *ret_offset,
			    bool *ret_has_ip);

/* Begin anew at the PSB at @offset. Return: whether there is one, and its PSB+ makes sense. */
bool walk_begin_at(struct walk *walk, uint64_t offset);

/* Take only the time of the packets before @end, until it is past @limit. Return: whether it is. */
bool walk_pass_until(struct walk *walk, uint64_t end, uint64_t limit);

/*
 * Behind an error: find the next packet before the next PSB that says where execution is, without
 * looking at code. Either walk_resume() is called then, or this function again, for the packet
 * after that.
 *
 * Return: whether there is one.
 */
_must_check_ bool walk_recover(struct walk *walk, struct walk_point *ret_point);

/* Go on at the @point that walk_recover() has found. The next events are those that a PSB+ there
 * would make. */
void walk_resume(struct walk *walk, const struct walk_point *point);

/* Go back to where @walk stood when it was copied to @before. */
void walk_go_back(struct walk *walk, const struct walk *before);

/* Pass over packets that only change the state. Return: what comes next. */
enum walk_next walk_ahead(struct walk *walk);

/* Take the TNT that comes next. Return: how many bits; the oldest is the highest of @ret_bits. */
unsigned walk_take_tnt(struct walk *walk, uint64_t *ret_bits);

/* Take the TIP that comes next. Return: whether it has an address. */
bool walk_take_tip(struct walk *walk, uint64_t *ret_ip);

/*
 * The same two at once, of what nearly all packets are. Return: whether the next packet is one; if
 * not, ask walk_ahead().
 */
static inline bool walk_quick_tnt(struct walk *walk, uint64_t *ret_bits, unsigned *ret_n)
{
	uint8_t byte;

	if (walk->offset >= walk->quick)
		return false;
	byte = walk->window.bytes[walk->offset - walk->window.start];
	if ((byte & 1) || byte <= 2)
		return false;
	*ret_n = 30 - (unsigned)__builtin_clz(byte);
	*ret_bits = (uint64_t)(byte >> 1) << (64 - *ret_n);
	walk->offset++;
	walk->leads = false;
	return true;
}

static inline bool walk_quick_tip(struct walk *walk, uint64_t *ret_ip)
{
	const uint8_t *p;
	uint64_t ip;

	if (walk->offset + 1 + sizeof(ip) > walk->quick)
		return false;
	p = walk->window.bytes + (walk->offset - walk->window.start);
	memcpy(&ip, p + 1, sizeof(ip));
	switch (p[0]) {
	case 0x2d:
		ip = (walk->last_ip & ~UINT64_C(0xffff)) | (ip & 0xffff);
		walk->offset += 3;
		break;
	case 0x4d:
		ip = (walk->last_ip & ~UINT64_C(0xffffffff)) | (ip & 0xffffffff);
		walk->offset += 5;
		break;
	case 0x6d:
		ip = (uint64_t)((int64_t)(ip << 16) >> 16);
		walk->offset += 7;
		break;
	default:
		return false;
	}
	walk->last_ip = *ret_ip = ip;
	walk->leads = false;
	return true;
}

/* The same of a TNT of eight bytes. */
bool walk_quick_long_tnt(struct walk *walk, uint64_t *ret_bits, unsigned *ret_n);

/* Pass over the packets of time that come next, as far as they can be read by their bytes alone. */
void walk_pass_time(struct walk *walk);

/* Take the event that comes next. Return: whether it makes sense; see walk->error. */
_must_check_ bool walk_take_event(struct walk *walk, struct walk_event *ret_event);

/*
 * Return: the offset up to which packets have been used up. A packet that waits for a later one has
 * not been, nor one some of whose events were not taken yet.
 */
static inline uint64_t walk_used(const struct walk *walk)
{
	if (walk->ready.n > 0)
		return walk->ready_from;
	return walk->has_waiting ? walk->waiting : walk->offset;
}

/* Return: the TSC as far as packets were read; 0: they do not say. */
static inline uint64_t walk_now(const struct walk *walk)
{
	return walk->tsc.has_tsc ? walk->tsc.now : 0;
}

/* Take the oldest note. */
struct walk_note walk_take_note(struct walk *walk);
