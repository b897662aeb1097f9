/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The encoder: each row is what a CPU did, and the bytes that the SDM wants for it. libipt's packet
 * decoder, which shares nothing with the encoder, judges a long stream.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <intel-pt.h>
#include <stdint.h>
#include <string.h>

#include "daemon/plugin/encode.h"

#define RING 4096
#define IP   UINT64_C(0x401000)

enum op {
	DONE,
	ON,    /* PGE at a */
	OFF,   /* PGD */
	FAULT, /* FUP a, PGD */
	TAKEN, /* b times a conditional branch that is taken */
	NOT,   /* and one that is not */
	JUMP,  /* indirect, to a */
	CALL,  /* returns to a */
	RET,   /* to a */
	PSB,   /* before a */
	LOST,
	EVENT,  /* FUP a, TIP IP */
	PAGING, /* a */
	RESUME, /* at a */
	TSC,    /* b */
	TICK,   /* b */
	FLUSH,
	MARK, /* expected bytes begin here */
};

struct step {
	enum op op;
	uint64_t a;
	unsigned b;
};

struct row {
	const char *name;
	bool uncompressed;
	bool long_tnt;
	struct encode_timing timing;
	struct step steps[80];
	size_t n_expected;
	uint8_t expected[80];
};

#define EXPECT(...) .n_expected = sizeof((uint8_t[]){ __VA_ARGS__ }), .expected = { __VA_ARGS__ }

#define PSB_BYTES                                                                                 \
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, \
	    0x82
#define TSC_BYTES(n) 0x19, (n), 0, 0, 0, 0, 0, 0
#define CBR_BYTES    0x02, 0x03, 0x0a, 0x00
#define EXEC_BYTES   0x99, 0x01
#define PSBEND_BYTES 0x02, 0x23

#define MTC                                  \
	{                                    \
		.mtc = true, .mtc_period = 1 \
	}
#define CYC                 \
	{                   \
		.cyc = true \
	}
#define BOTH                                              \
	{                                                 \
		.mtc = true, .cyc = true, .mtc_period = 1 \
	}

/* Every row but those of the start begins with packets on at IP. */
#define BEGIN              \
	{ ON, IP, 0 },     \
	{                  \
		MARK, 0, 0 \
	}

static const struct row rows[] = {
	/* The state of a CPU. */
	{ "the first packets", .steps = { { MARK, 0, 0 }, { ON, IP, 9 } },
	  EXPECT(PSB_BYTES, TSC_BYTES(9), CBR_BYTES, PSBEND_BYTES, TSC_BYTES(9), EXEC_BYTES, 0x51,
		 0x00, 0x10, 0x40, 0x00) },
	{ "a system call and back", .steps = { BEGIN, { OFF, 0, 0 }, { ON, IP + 2, 7 } },
	  EXPECT(0x01, TSC_BYTES(7), 0x31, 0x02, 0x10) },
	{ "a fault and its handler",
	  .steps = { BEGIN, { NOT, 0, 1 }, { FAULT, IP + 4, 0 }, { ON, 0x402000, 8 } },
	  EXPECT(0x04, 0x3d, 0x04, 0x10, 0x01, TSC_BYTES(8), 0x31, 0x00, 0x20) },
	{ "PSB+ with packets on", .steps = { BEGIN, { TAKEN, 0, 1 }, { PSB, IP + 8, 3 } },
	  EXPECT(0x06, PSB_BYTES, TSC_BYTES(3), CBR_BYTES, EXEC_BYTES, 0x7d, 0x08, 0x10, 0x40, 0x00,
		 0x00, 0x00, PSBEND_BYTES) },
	{ "no MODE.Exec at PGE when the PSB+ had one",
	  .steps = { BEGIN, { PSB, IP, 3 }, { OFF, 0, 0 }, { MARK, 0, 0 }, { ON, IP, 4 } },
	  EXPECT(TSC_BYTES(4), 0x31, 0x00, 0x10) },
	{ "an overflow drops what is pending",
	  .steps = { BEGIN, { TAKEN, 0, 3 }, { LOST, 0, 5 }, { ON, IP, 6 } },
	  EXPECT(0x02, 0xf3, TSC_BYTES(5), TSC_BYTES(6), 0x71, 0x00, 0x10, 0x40, 0x00, 0x00,
		 0x00) },
	{ "an overflow of a CPU that never ran", .steps = { { MARK, 0, 0 }, { LOST, 0, 5 } },
	  EXPECT(PSB_BYTES, TSC_BYTES(5), CBR_BYTES, PSBEND_BYTES, 0x02, 0xf3, TSC_BYTES(5)) },
	{ "an overflow that ends where packets are on",
	  .steps = { BEGIN,
		     { TAKEN, 0, 3 },
		     { LOST, 0, 5 },
		     { RESUME, IP + 1, 0 },
		     { JUMP, IP, 0 } },
	  EXPECT(0x02, 0xf3, TSC_BYTES(5), 0x7d, 0x01, 0x10, 0x40, 0x00, 0x00, 0x00, 0x2d, 0x00,
		 0x10) },
	{ "an interrupt whose handler is traced",
	  .steps = { BEGIN, { TAKEN, 0, 1 }, { EVENT, IP + 7, 0 } },
	  EXPECT(0x06, 0x3d, 0x07, 0x10, 0x2d, 0x00, 0x10) },
	{ "another address space", .steps = { BEGIN, { TAKEN, 0, 1 }, { PAGING, 0x12345006, 0 } },
	  EXPECT(0x06, 0x02, 0x43, 0x00, 0x45, 0x23, 0x01, 0x00, 0x00) },
	{ "an address space, told by PSB+",
	  .steps = { BEGIN,
		     { OFF, 0, 0 },
		     { MARK, 0, 0 },
		     { PAGING, 0x1020, 0 },
		     { ON, IP, 0 },
		     { PSB, IP, 3 } },
	  EXPECT(TSC_BYTES(0), 0x31, 0x00, 0x10, PSB_BYTES, TSC_BYTES(3), 0x02, 0x43, 0x02, 0x01,
		 0x00, 0x00, 0x00, 0x00, CBR_BYTES, EXEC_BYTES, 0x7d, 0x00, 0x10, 0x40, 0x00, 0x00,
		 0x00, PSBEND_BYTES) },
	{ "time", .steps = { BEGIN, { TSC, 0, 0x42 } }, EXPECT(TSC_BYTES(0x42)) },

	/* Conditional branches. */
	{ "nothing pending", .steps = { BEGIN, { FLUSH, 0, 0 } }, .n_expected = 0 },
	{ "one taken", .steps = { BEGIN, { TAKEN, 0, 1 }, { FLUSH, 0, 0 } }, EXPECT(0x06) },
	{ "oldest first", .steps = { BEGIN, { TAKEN, 0, 1 }, { NOT, 0, 2 }, { FLUSH, 0, 0 } },
	  EXPECT(0x18) },
	{ "six", .steps = { BEGIN, { TAKEN, 0, 6 }, { FLUSH, 0, 0 } }, EXPECT(0xfe) },
	{ "seven", .steps = { BEGIN, { NOT, 0, 6 }, { TAKEN, 0, 1 }, { FLUSH, 0, 0 } },
	  EXPECT(0x80, 0x06) },
	{ "six go by themselves", .steps = { BEGIN, { TAKEN, 0, 6 } }, EXPECT(0xfe) },
	{ "42 are seven short ones", .long_tnt = true,
	  .steps = { BEGIN, { TAKEN, 0, 42 }, { FLUSH, 0, 0 } },
	  EXPECT(0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe) },
	{ "43 are a long one", .long_tnt = true,
	  .steps = { BEGIN, { NOT, 0, 42 }, { TAKEN, 0, 1 }, { FLUSH, 0, 0 } },
	  EXPECT(0x02, 0xa3, 0x01, 0x00, 0x00, 0x00, 0x00, 0x08) },
	{ "47 go by themselves", .long_tnt = true, .steps = { BEGIN, { TAKEN, 0, 47 } },
	  EXPECT(0x02, 0xa3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) },
	{ "before a TIP", .steps = { BEGIN, { NOT, 0, 1 }, { JUMP, IP + 1, 0 } },
	  EXPECT(0x04, 0x2d, 0x01, 0x10) },

	/* IPs. */
	{ "16 bits change", .steps = { BEGIN, { JUMP, 0x40ffff, 0 } }, EXPECT(0x2d, 0xff, 0xff) },
	{ "the same IP again", .steps = { BEGIN, { JUMP, IP, 0 } }, EXPECT(0x2d, 0x00, 0x10) },
	{ "32 bits change", .steps = { BEGIN, { JUMP, 0x12345678, 0 } },
	  EXPECT(0x4d, 0x78, 0x56, 0x34, 0x12) },
	{ "48 bits change", .steps = { BEGIN, { JUMP, UINT64_C(0x7fff12345678), 0 } },
	  EXPECT(0x6d, 0x78, 0x56, 0x34, 0x12, 0xff, 0x7f) },
	{ "the upper half is the sign",
	  .steps = { BEGIN, { JUMP, UINT64_C(0xffffffffff600000), 0 } },
	  EXPECT(0x6d, 0x00, 0x00, 0x60, 0xff, 0xff, 0xff) },
	{ "not canonical, upper 16 bits known",
	  .steps = { BEGIN, { JUMP, UINT64_C(0x0000800000000000), 0 } },
	  EXPECT(0x8d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80) },
	{ "all bits change", .steps = { BEGIN, { JUMP, UINT64_C(0x1122334455667788), 0 } },
	  EXPECT(0xcd, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11) },
	{ "TIP.PGD without IP leaves the last one",
	  .steps = { BEGIN,
		     { JUMP, 0x500000, 0 },
		     { OFF, 0, 0 },
		     { MARK, 0, 0 },
		     { ON, 0x500004, 1 } },
	  EXPECT(TSC_BYTES(1), 0x31, 0x04, 0x00) },

	/* Returns. */
	{ "a return to its call",
	  .steps = { BEGIN, { CALL, IP + 5, 0 }, { RET, IP + 5, 0 }, { FLUSH, 0, 0 } },
	  EXPECT(0x06) },
	{ "a return elsewhere", .steps = { BEGIN, { CALL, IP + 5, 0 }, { RET, IP + 6, 0 } },
	  EXPECT(0x2d, 0x06, 0x10) },
	{ "a return without a call", .steps = { BEGIN, { RET, IP + 6, 0 } },
	  EXPECT(0x2d, 0x06, 0x10) },
	{ "uncompressed", .uncompressed = true,
	  .steps = { BEGIN, { CALL, IP + 5, 0 }, { RET, IP + 5, 0 } }, EXPECT(0x2d, 0x05, 0x10) },
	{ "a return elsewhere has taken its call's address",
	  .steps = { BEGIN,
		     { CALL, IP + 1, 0 },
		     { CALL, IP + 2, 0 },
		     { RET, IP + 9, 0 },
		     { MARK, 0, 0 },
		     { RET, IP + 1, 0 },
		     { FLUSH, 0, 0 } },
	  EXPECT(0x06) },
	{ "a return past its call takes that of another",
	  .steps = { BEGIN,
		     { CALL, IP + 1, 0 },
		     { CALL, IP + 2, 0 },
		     { CALL, IP + 3, 0 },
		     { RET, IP + 2, 0 },
		     { MARK, 0, 0 },
		     { RET, IP + 1, 0 },
		     { RET, IP + 1, 0 },
		     { FLUSH, 0, 0 } },
	  EXPECT(0x2d, 0x01, 0x10, 0x06) },
	{ "a system call clears the stack",
	  .steps = { BEGIN,
		     { CALL, IP + 1, 0 },
		     { OFF, 0, 0 },
		     { ON, IP, 0 },
		     { MARK, 0, 0 },
		     { RET, IP + 1, 0 } },
	  EXPECT(0x2d, 0x01, 0x10) },
	{ "an overflow clears the stack",
	  .steps = { BEGIN,
		     { CALL, IP + 1, 0 },
		     { LOST, 0, 5 },
		     { RESUME, IP, 0 },
		     { MARK, 0, 0 },
		     { RET, IP + 1, 0 } },
	  EXPECT(0x2d, 0x01, 0x10) },
	{ "PSB clears the stack",
	  .steps = { BEGIN,
		     { CALL, IP + 1, 0 },
		     { PSB, IP, 0 },
		     { MARK, 0, 0 },
		     { RET, IP + 1, 0 } },
	  EXPECT(0x2d, 0x01, 0x10) },

	/* Time: the crystal ticks every 40. */
	{ "TMA follows TSC", .timing = MTC,
	  .steps = { { ON, IP, 0 }, { OFF, 0, 0 }, { MARK, 0, 0 }, { ON, IP, 85 } },
	  EXPECT(TSC_BYTES(85), 0x02, 0x73, 2, 0, 0, 5, 0, 0x31, 0x00, 0x10) },
	{ "in PSB+, too", .timing = MTC, .steps = { { MARK, 0, 0 }, { ON, IP, 39 } },
	  EXPECT(PSB_BYTES, TSC_BYTES(39), 0x02, 0x73, 0, 0, 0, 39, 0, CBR_BYTES, PSBEND_BYTES,
		 TSC_BYTES(39), 0x02, 0x73, 0, 0, 0, 39, 0, EXEC_BYTES, 0x51, 0x00, 0x10, 0x40,
		 0x00) },
	{ "MTC when a period begins", .timing = MTC,
	  .steps = { BEGIN, { TICK, 0, 79 }, { TICK, 0, 80 }, { TICK, 0, 159 } }, EXPECT(0x59, 1) },
	{ "one MTC for several periods", .timing = MTC, .steps = { BEGIN, { TICK, 0, 80 * 128 } },
	  EXPECT(0x59, 128) },
	{ "TSC for too many", .timing = MTC,
	  .steps = { BEGIN, { TAKEN, 0, 1 }, { TICK, 0, 80 * 129 } },
	  EXPECT(0x06, 0x19, 0x50, 0x28, 0, 0, 0, 0, 0, 0x02, 0x73, 0x02, 0x01, 0, 0, 0) },
	{ "MTC counts 256 periods", .timing = MTC,
	  .steps = { BEGIN, { TICK, 0, 80 * 128 }, { TICK, 0, 80 * 255 }, { TICK, 0, 80 * 257 } },
	  EXPECT(0x59, 128, 0x59, 255, 0x59, 1) },
	{ "MTC before TSC, which has a TMA", .timing = MTC, .steps = { BEGIN, { TSC, 0, 80 } },
	  EXPECT(0x59, 1, TSC_BYTES(80), 0x02, 0x73, 2, 0, 0, 0, 0) },
	{ "CYC before TSC", .timing = CYC, .steps = { BEGIN, { TSC, 0, 32 }, { JUMP, IP, 0 } },
	  EXPECT(0x07, 0x02, TSC_BYTES(32), 0x2d, 0x00, 0x10) },
	{ "no CYC before TSC with packets off", .timing = CYC,
	  .steps = { BEGIN, { OFF, 0, 0 }, { MARK, 0, 0 }, { TSC, 0, 32 } },
	  EXPECT(TSC_BYTES(32)) },
	{ "no CYC without time", .timing = CYC, .steps = { BEGIN, { JUMP, IP, 0 } },
	  EXPECT(0x2d, 0x00, 0x10) },
	{ "CYC before a TIP", .timing = CYC,
	  .steps = { BEGIN, { TICK, 0, 1 }, { JUMP, IP, 0 }, { JUMP, IP, 0 } },
	  EXPECT(0x0b, 0x2d, 0x00, 0x10, 0x2d, 0x00, 0x10) },
	{ "CYC before TNT, not before each", .timing = CYC,
	  .steps = { BEGIN, { TICK, 0, 31 }, { NOT, 0, 6 }, { TAKEN, 0, 1 }, { OFF, 0, 0 } },
	  EXPECT(0xfb, 0x80, 0x06, 0x01) },
	{ "CYC of two bytes before the end", .timing = CYC,
	  .steps = { BEGIN, { TICK, 0, 32 }, { OFF, 0, 0 } }, EXPECT(0x07, 0x02, 0x01) },
	{ "CYC of three bytes before a fault", .timing = CYC,
	  .steps = { BEGIN, { TICK, 0, 0x1fff }, { FAULT, IP, 0 } },
	  EXPECT(0xff, 0xff, 0x02, 0x3d, 0x00, 0x10, 0x01) },
	{ "CYC before PSB", .timing = CYC, .steps = { BEGIN, { PSB, IP, 2 } },
	  EXPECT(0x13, PSB_BYTES, TSC_BYTES(2), CBR_BYTES, EXEC_BYTES, 0x7d, 0x00, 0x10, 0x40, 0x00,
		 0x00, 0x00, PSBEND_BYTES) },
	{ "with both the clock begins anew", .timing = BOTH,
	  .steps = { BEGIN, { OFF, 0, 0 }, { MARK, 0, 0 }, { ON, IP, 0 } },
	  EXPECT(CBR_BYTES, TSC_BYTES(0), 0x02, 0x73, 0, 0, 0, 0, 0, 0x31, 0x00, 0x10) },
	{ "with both MTC tells when, CYC how long until it and from it on", .timing = BOTH,
	  .steps = { BEGIN, { TICK, 0, 83 }, { JUMP, IP, 0 } },
	  EXPECT(0x87, 0x04, 0x59, 1, 0x1b, 0x2d, 0x00, 0x10) },
};

static void run(struct encode *e, const struct step *steps, uint64_t *ret_mark)
{
	for (; steps->op != DONE; steps++) {
		switch (steps->op) {
		case ON:
			encode_enable(e, steps->a, steps->b);
			break;
		case OFF:
			encode_disable(e);
			break;
		case FAULT:
			encode_disable_at(e, steps->a);
			break;
		case TAKEN:
		case NOT:
			for (unsigned i = 0; i < steps->b; i++)
				encode_cond(e, steps->op == TAKEN);
			break;
		case JUMP:
			encode_indirect(e, steps->a);
			break;
		case CALL:
			encode_push(e, steps->a, 1);
			break;
		case RET:
			encode_return(e, steps->a);
			break;
		case PSB:
			encode_psb(e, steps->a, steps->b);
			break;
		case EVENT:
			encode_event(e, steps->a, IP);
			break;
		case PAGING:
			encode_paging(e, steps->a);
			break;
		case RESUME:
			encode_resume(e, steps->a);
			break;
		case LOST:
			encode_overflow(e, steps->b);
			break;
		case TSC:
			encode_tsc(e, steps->b);
			break;
		case TICK:
			encode_tick(e, steps->b);
			break;
		case FLUSH:
			encode_flush(e);
			break;
		case MARK:
			*ret_mark = e->state.head;
			break;
		case DONE:
			break;
		}
	}
}

static void bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static uint8_t ring[RING];
		struct encode e;
		uint64_t mark = UINT64_MAX;

		print_message("  %s\n", rows[i].name);
		encode_init(&e, RING, RING, !rows[i].uncompressed, rows[i].long_tnt);
		e.ring = ring;
		e.timing = rows[i].timing;
		run(&e, rows[i].steps, &mark);
		assert_int_equal(e.state.head - mark, rows[i].n_expected);
		assert_memory_equal(ring + mark, rows[i].expected, rows[i].n_expected);
	}
}

/* The stack holds 64 calls; the 65th return has lost its own. */
static void deep(void **state)
{
	static uint8_t ring[RING];
	struct encode e;
	uint64_t head;

	(void)state;
	encode_init(&e, RING, RING, true, false);
	e.ring = ring;
	encode_enable(&e, IP, 0);
	for (uint64_t i = 0; i < 65; i++)
		encode_push(&e, IP + i, 1);
	head = e.state.head;
	for (uint64_t i = 64; i > 0; i--)
		encode_return(&e, IP + i);
	encode_flush(&e);
	/* Ten packets of six, and one of four. */
	assert_int_equal(e.state.head - head, 11);
	head = e.state.head;
	encode_return(&e, IP);
	assert_int_equal(e.state.head - head, 3);
}

static void psb_is_due(void **state)
{
	static uint8_t ring[RING];
	struct encode e;

	(void)state;
	encode_init(&e, RING, 64, true, false);
	e.ring = ring;
	assert_true(encode_psb_due(&e));
	encode_enable(&e, IP, 0);
	assert_false(encode_psb_due(&e));
	assert_int_equal(e.state.next_psb, 16 + 64);
	while (!encode_psb_due(&e))
		encode_indirect(&e, IP);
	assert_in_range(e.state.head, e.state.next_psb, e.state.next_psb + 2);
	/* With packets off it is written before the next PGE. */
	encode_disable(&e);
	encode_enable(&e, IP, 0);
	assert_in_range(e.state.next_psb - e.state.head, 64 - 32, 64 - 1);
}

/* Code of the other mode than the CPU ran last is announced, in each PSB+ too. */
static void modes(void **state)
{
	static const uint8_t mode32[] = { 0x99, 0x02 }, mode64[] = { 0x99, 0x01 };
	static uint8_t ring[RING], other_ring[RING];
	struct encode e, other;
	uint64_t head;

	(void)state;
	encode_init(&e, RING, RING, true, false);
	e.ring = ring;
	encode_enable(&e, IP, 0);
	assert_non_null(memmem(ring, e.state.head, mode64, 2));
	encode_disable(&e);

	encode_init(&other, RING, RING, true, false);
	other.ring = other_ring;
	other.mode = 32;
	assert_false(encode_adopt(&other, &e.state));
	head = other.state.head;
	encode_enable(&other, IP, 0);
	assert_int_equal(other.mode, 32);
	assert_memory_equal(other_ring + head + 8, mode32, 2);
	encode_disable(&other);
	head = other.state.head;
	encode_enable(&other, IP, 0);
	assert_null(memmem(other_ring + head, other.state.head - head, mode32, 2));
	head = other.state.head;
	encode_psb(&other, IP, 0);
	assert_non_null(memmem(other_ring + head, other.state.head - head, mode32, 2));
}

/* A packet across the ring's end; not one byte beyond it is touched. */
static void wraps(void **state)
{
	static uint8_t ring[RING + 8];
	struct encode e;

	(void)state;
	memset(ring, 0xee, sizeof(ring));
	encode_init(&e, RING, RING, true, false);
	e.ring = ring;
	e.state.head = RING - 3;
	encode_tsc(&e, UINT64_C(0x77665544332211));
	assert_int_equal(e.state.head, RING + 5);
	assert_memory_equal(ring + RING - 3, ((uint8_t[]){ 0x19, 0x11, 0x22 }), 3);
	assert_memory_equal(ring, ((uint8_t[]){ 0x33, 0x44, 0x55, 0x66, 0x77, 0xee }), 6);
	assert_int_equal(ring[RING], 0xee);
	assert_int_equal(ring[RING - 4], 0xee);
}

/* --- the second judge ------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* What the stream was made of, to be found in it again. */
struct made {
	uint64_t n_bits, bits_hash;
	uint64_t n_targets, targets_hash;
};

static void note_bit(struct made *m, bool bit)
{
	m->n_bits++;
	m->bits_hash = m->bits_hash * 31 + bit + 1;
}

static void note_target(struct made *m, uint64_t ip)
{
	m->n_targets++;
	m->targets_hash = m->targets_hash * 31 + ip;
}

static void make_random(struct encode *e, struct made *m)
{
	uint32_t seed = 1;

	encode_enable(e, IP, 1);
	note_target(m, IP);
	for (int i = 0; i < 20000; i++) {
		const uint64_t ip = next_random(&seed) % 3 == 0
					? (uint64_t)next_random(&seed) << (next_random(&seed) % 23)
					: IP + next_random(&seed) % 4096;

		if (next_random(&seed) % 8 != 0) {
			const bool bit = next_random(&seed) & 1;

			encode_cond(e, bit);
			note_bit(m, bit);
		} else if (next_random(&seed) % 8 != 0) {
			encode_indirect(e, ip);
			note_target(m, ip);
		} else {
			encode_disable_at(e, ip);
			encode_enable(e, ip, (uint64_t)i);
			note_target(m, ip);
			note_target(m, ip);
		}
		if (encode_psb_due(e)) {
			encode_psb(e, ip, (uint64_t)i);
			note_target(m, ip);
		}
	}
	encode_disable(e);
}

static uint64_t full_ip(const struct pt_packet_ip *packet, uint64_t last)
{
	switch (packet->ipc) {
	case pt_ipc_update_16:
		return (last & ~UINT64_C(0xffff)) | packet->ip;
	case pt_ipc_update_32:
		return (last & ~UINT64_C(0xffffffff)) | packet->ip;
	case pt_ipc_update_48:
		return (last & ~UINT64_C(0xffffffffffff)) | packet->ip;
	case pt_ipc_sext_48:
		return (uint64_t)((int64_t)(packet->ip << 16) >> 16);
	default:
		return packet->ip;
	}
}

static void read_back(const uint8_t *ring, size_t size, struct made *m)
{
	struct pt_packet_decoder *decoder;
	struct pt_config config;
	uint64_t last = 0;

	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)ring;
	config.end = config.begin + size;
	decoder = pt_pkt_alloc_decoder(&config);
	assert_non_null(decoder);
	assert_true(pt_pkt_sync_forward(decoder) >= 0);
	for (;;) {
		struct pt_packet p;
		const int r = pt_pkt_next(decoder, &p, sizeof(p));

		if (r == -pte_eos)
			break;
		assert_true(r > 0);
		switch (p.type) {
		case ppt_psb:
			last = 0;
			break;
		case ppt_tnt_8:
		case ppt_tnt_64:
			for (int i = p.payload.tnt.bit_size - 1; i >= 0; i--)
				note_bit(m, p.payload.tnt.payload >> i & 1);
			break;
		case ppt_tip:
		case ppt_fup:
		case ppt_tip_pge:
			last = full_ip(&p.payload.ip, last);
			note_target(m, last);
			break;
		case ppt_tip_pgd:
		case ppt_tsc:
		case ppt_cbr:
		case ppt_mode:
		case ppt_psbend:
			break;
		default:
			fail_msg("packet of type %d", p.type);
		}
	}
	pt_pkt_free_decoder(decoder);
}

static void is_understood(void **state)
{
	static uint8_t ring[1 << 18];
	struct made made = {}, read = {};
	struct encode e;

	(void)state;
	encode_init(&e, sizeof(ring), 512, true, false);
	e.ring = ring;
	make_random(&e, &made);
	assert_in_range(e.state.head, 10000, sizeof(ring));
	read_back(ring, e.state.head, &read);
	assert_int_equal(read.n_bits, made.n_bits);
	assert_int_equal(read.n_targets, made.n_targets);
	assert_int_equal(read.bits_hash, made.bits_hash);
	assert_int_equal(read.targets_hash, made.targets_hash);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes), cmocka_unit_test(deep),  cmocka_unit_test(psb_is_due),
		cmocka_unit_test(modes), cmocka_unit_test(wraps), cmocka_unit_test(is_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
