/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/encode.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "util/psb.h"

enum {
	OP_PGD = 0x01,
	OP_TIP = 0x0d,
	OP_PGE = 0x11,
	OP_TSC = 0x19,
	OP_FUP = 0x1d,
	OP_MTC = 0x59,
};

/* Number of periods that may be skipped, of the 256 that the count in an MTC distinguishes. */
#define MTC_SKIPPED_MAX 128

/* CS.L and CS.D of MODE.Exec: 64-bit and 32-bit code. */
#define MODE_EXEC_64 0x01
#define MODE_EXEC_32 0x02

/*
 * Inline, since most sizes are constants: it is called for every packet.
 *
 * Not one byte more than the packet has may be written: what lies behind head are the oldest bytes
 * of the ring, which a reader may still want.
 */
static inline void put_packet(struct encode *e, const void *bytes, size_t n)
{
	const uint64_t at = e->state.head & (e->ring_size - 1);
	const size_t room = e->ring_size - at;

	if (n <= room) {
		memcpy(e->ring + at, bytes, n);
	} else {
		memcpy(e->ring + at, bytes, room);
		memcpy(e->ring, (const uint8_t *)bytes + room, n - room);
	}
	e->state.head += n;
}

static void put_byte(struct encode *e, uint8_t byte)
{
	e->ring[e->state.head & (e->ring_size - 1)] = byte;
	e->state.head++;
}

static void clear_stack(struct encode_stack *stack)
{
	stack->depth = 0;
}

static bool is_canonical(uint64_t ip)
{
	return (uint64_t)((int64_t)(ip << 16) >> 16) == ip;
}

static inline void put_ip_as(struct encode *e, uint8_t op, uint64_t ip, uint8_t mode, uint8_t n)
{
	uint8_t bytes[9] = { op | mode << 5 };

	memcpy(bytes + 1, &ip, 8);
	put_packet(e, bytes, 1 + n);
	e->state.last_ip = ip;
}

/* The last IP after an overflow. No address resembles it, so the next one is written in full.
 * libipt counts from 0 there, perf from the IP before it; both understand a full IP. */
#define NO_IP UINT64_C(0x5555555500000000)

/* Write an IP packet. The IP is compressed against the last one. */
static inline void put_ip(struct encode *e, uint8_t op, uint64_t ip)
{
	const uint64_t change = ip ^ e->state.last_ip;

	if (!(change >> 16))
		put_ip_as(e, op, ip, 1, 2);
	else if (!(change >> 32))
		put_ip_as(e, op, ip, 2, 4);
	else if (is_canonical(ip))
		put_ip_as(e, op, ip, 3, 6);
	else if (!(change >> 48))
		put_ip_as(e, op, ip, 4, 6);
	else
		put_ip_as(e, op, ip, 6, 8);
}

/* Write the IP of a PSB+ in full. Compressing it against 0 would be legal; but perf reads this IP
 * ahead of the PSB, while it still has the IP from before it, and hardware never shows that
 * case. */
static void put_ip_full(struct encode *e, uint8_t op, uint64_t ip)
{
	if (is_canonical(ip))
		put_ip_as(e, op, ip, 3, 6);
	else
		put_ip_as(e, op, ip, 6, 8);
}

static uint64_t mtc_at(const struct encode *e, uint64_t tsc)
{
	return tsc / ENCODE_TSC_PER_CTC >> e->timing.mtc_period;
}

/* Get the tick of the crystal at @tsc, and how much later than its tick that is. */
static void put_tma(struct encode *e, uint64_t tsc)
{
	const uint64_t ctc = tsc / ENCODE_TSC_PER_CTC;
	const uint8_t rest = (uint8_t)(tsc % ENCODE_TSC_PER_CTC);

	put_packet(
	    e, (const uint8_t[]){ 0x02, 0x73, (uint8_t)ctc, (uint8_t)(ctc >> 8), 0, rest, 0 }, 7);
	e->state.mtc = mtc_at(e, tsc);
}

static void put_tsc(struct encode *e, uint64_t tsc)
{
	const uint64_t packet = tsc << 8 | OP_TSC;

	put_packet(e, &packet, 8);
	e->state.now = e->state.timed = tsc;
	if (e->timing.mtc)
		put_tma(e, tsc);
}

static void put_cbr(struct encode *e)
{
	put_packet(e, (const uint8_t[]){ 0x02, 0x03, ENCODE_CBR, 0x00 }, 4);
}

/* Restart the cycle counter. Otherwise decoders would compare the cycles since the last MTC, which
 * were not all counted, with the whole time since then. */
static void restart_clock(struct encode *e)
{
	if (e->timing.mtc && e->timing.cyc)
		put_cbr(e);
}

/* Write a CYC packet. The first byte has five bits of the count, each other byte seven; one bit in
 * each says that another byte follows. */
static void put_cyc(struct encode *e, uint64_t n)
{
	put_byte(e, (uint8_t)((n & 0x1f) << 3 | (n >> 5 != 0) << 2 | 0x03));
	for (n >>= 5; n != 0; n >>= 7)
		put_byte(e, (uint8_t)((n & 0x7f) << 1 | (n >> 7 != 0)));
}

/* Write the cycles before a packet that has a time, if any have passed. The time of a FUP is that
 * of its TIP.PGD. */
static inline void put_cycles(struct encode *e)
{
	if (!e->timing.cyc || e->state.now <= e->state.timed)
		return;
	put_cyc(e, e->state.now - e->state.timed);
	e->state.timed = e->state.now;
}

void encode_tick(struct encode *e, uint64_t tsc)
{
	const uint64_t mtc = mtc_at(e, tsc);

	if (e->timing.mtc && mtc - e->state.mtc > MTC_SKIPPED_MAX) {
		encode_flush(e);
		put_tsc(e, tsc);
		restart_clock(e);
	} else if (e->timing.mtc && mtc != e->state.mtc) {
		/* An MTC states the time at which the period began. */
		e->state.now = (mtc << e->timing.mtc_period) * ENCODE_TSC_PER_CTC;
		put_cycles(e);
		put_packet(e, (const uint8_t[]){ OP_MTC, (uint8_t)mtc }, 2);
		e->state.timed = e->state.now;
		e->state.mtc = mtc;
	}
	e->state.now = tsc;
}

void encode_tsc(struct encode *e, uint64_t tsc)
{
	if (e->state.enabled && encode_is_timed(e)) {
		encode_tick(e, tsc);
		put_cycles(e);
	}
	put_tsc(e, tsc);
}

static void put_mode_exec(struct encode *e)
{
	put_packet(e, (const uint8_t[]){ 0x99, e->mode == 32 ? MODE_EXEC_32 : MODE_EXEC_64 }, 2);
	e->state.mode_sent = e->mode;
}

static void put_pip(struct encode *e)
{
	const uint64_t packet = e->state.paging << 16 | 0x4302;

	put_packet(e, &packet, 8);
}

/* Write PSB, TSC and CBR, the part of PSB+ that is the same with packets on and off. */
static void begin_psb(struct encode *e, uint64_t tsc)
{
	encode_flush(e);
	put_cycles(e);
	put_packet(e, psb_bytes, PSB_SIZE);
	e->state.next_psb = e->state.head + e->psb_period;
	e->state.last_ip = 0;
	e->state.mode_sent = 0;
	clear_stack(&e->state.calls);
	put_tsc(e, tsc);
	if (e->state.paging != 0)
		put_pip(e);
	put_cbr(e);
}

static void end_psb(struct encode *e)
{
	put_packet(e, (const uint8_t[]){ 0x02, 0x23 }, 2);
}

void encode_init(struct encode *e, uint64_t ring_size, uint32_t psb_period, bool return_compression,
		 bool long_tnt)
{
	*e = (struct encode){
		.ring_size = ring_size,
		.psb_period = psb_period,
		.return_compression = return_compression,
		.full_tnt = UINT64_C(1) << (long_tnt ? ENCODE_TNT_LONG : ENCODE_TNT_SHORT),
		.mode = 64,
		.state = { .tnt = 1 },
	};
}

bool encode_adopt(struct encode *e, const struct encode_state *state)
{
	const uint64_t paging = e->state.paging;
	struct encode_state *own = &e->state;
	bool missing;

	memcpy(own, state, sizeof(*own));
	/* The checks below must see the copy; the compiler must not read @state again. */
	atomic_signal_fence(memory_order_seq_cst);
	own->paging = paging;

	missing = own->enabled || own->tnt > 1;
	own->enabled = false;
	own->tnt = 1;
	if (own->calls.depth > ENCODE_STACK)
		clear_stack(&own->calls);
	return missing;
}

void encode_forget(struct encode *e)
{
	e->state.mode_sent = 0;
	e->state.last_ip = NO_IP;
}

void encode_begin(struct encode *e, uint64_t tsc)
{
	begin_psb(e, tsc);
	end_psb(e);
}

void encode_enable(struct encode *e, uint64_t ip, uint64_t tsc)
{
	assert(!e->state.enabled && e->state.tnt == 1);

	if (encode_psb_due(e))
		encode_begin(e, tsc);
	/* A TSC of its own: the one in the PSB+ does not say when the code that follows begins. */
	restart_clock(e);
	put_tsc(e, tsc);
	if (e->state.mode_sent != e->mode)
		put_mode_exec(e);
	put_ip(e, OP_PGE, ip);
	e->state.enabled = true;
}

void encode_disable(struct encode *e)
{
	encode_flush(e);
	put_cycles(e);
	put_byte(e, OP_PGD);
	e->state.enabled = false;
	clear_stack(&e->state.calls);
}

void encode_disable_at(struct encode *e, uint64_t ip)
{
	encode_flush(e);
	put_cycles(e);
	put_ip(e, OP_FUP, ip);
	encode_disable(e);
}

void encode_event(struct encode *e, uint64_t ip, uint64_t to)
{
	encode_flush(e);
	put_cycles(e);
	put_ip(e, OP_FUP, ip);
	put_ip(e, OP_TIP, to);
}

void encode_paging(struct encode *e, uint64_t cr3)
{
	/* Bits 51 to 5 of CR3, above the bit that marks a virtual machine. */
	e->state.paging = (cr3 >> 5 & ((UINT64_C(1) << 47) - 1)) << 1;
	if (!e->state.enabled)
		return;
	encode_flush(e);
	put_cycles(e);
	put_pip(e);
}

void encode_indirect(struct encode *e, uint64_t target)
{
	encode_flush(e);
	put_cycles(e);
	put_ip(e, OP_TIP, target);
}

void encode_cond(struct encode *e, bool is_taken)
{
	encode_bits(e, is_taken, 1);
	if (encode_is_full(e))
		encode_flush(e);
}

void encode_return(struct encode *e, uint64_t target)
{
	struct encode_stack *calls = &e->state.calls;
	const bool is_compressed = encode_is_compressed(e, target);

	if (calls->depth > 0) {
		calls->depth--;
		calls->top--;
	}
	if (is_compressed)
		encode_cond(e, true);
	else
		encode_indirect(e, target);
}

/* Write more branches than a short packet has. */
static void put_many(struct encode *e, unsigned n_bits)
{
	const uint64_t packet = e->state.tnt << 16 | 0xa302;

	/* Up to seven short packets are smaller than a long one. */
	if (n_bits > 7 * ENCODE_TNT_SHORT) {
		put_packet(e, &packet, 8);
		return;
	}
	while (n_bits > 0) {
		const unsigned n = n_bits < ENCODE_TNT_SHORT ? n_bits : ENCODE_TNT_SHORT;
		const uint64_t bits = e->state.tnt >> (n_bits - n) & ((1u << n) - 1);

		put_byte(e, (uint8_t)((1u << n | bits) << 1));
		n_bits -= n;
	}
}

void encode_flush(struct encode *e)
{
	const uint64_t tnt = e->state.tnt;

	if (tnt == 1)
		return;
	put_cycles(e);
	if (tnt >> (ENCODE_TNT_SHORT + 1) == 0)
		put_byte(e, (uint8_t)(tnt << 1));
	else
		put_many(e, 63 - (unsigned)__builtin_clzll(tnt));
	e->state.tnt = 1;
}

void encode_psb(struct encode *e, uint64_t ip, uint64_t tsc)
{
	assert(e->state.enabled);

	if (encode_is_timed(e))
		encode_tick(e, tsc);
	begin_psb(e, tsc);
	put_mode_exec(e);
	put_ip_full(e, OP_FUP, ip);
	end_psb(e);
}

void encode_overflow(struct encode *e, uint64_t tsc)
{
	e->state.enabled = false;
	e->state.tnt = 1;
	clear_stack(&e->state.calls);
	/* A decoder cannot read anything before the first PSB. */
	if (e->state.next_psb == 0)
		encode_begin(e, tsc);
	put_packet(e, (const uint8_t[]){ 0x02, 0xf3 }, 2);
	e->state.last_ip = NO_IP;
	encode_tsc(e, tsc);
}

void encode_resume(struct encode *e, uint64_t ip)
{
	assert(!e->state.enabled && e->state.tnt == 1);

	if (e->state.mode_sent != e->mode)
		put_mode_exec(e);
	put_ip(e, OP_FUP, ip);
	e->state.enabled = true;
}
