/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Encode
 *
 * Writes the PT packets of one virtual CPU as a CPU does by the SDM (volume 3, "Intel Processor
 * Trace"). The module does not depend on QEMU: its input is what an instruction did, its output are
 * bytes in a ring. While no thread owns the CPU, its state is in the pool's shared memory beside
 * the ring; so it is plain data without pointers.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define ENCODE_STACK     64                 /* SDM: depth of the return compression stack */
#define ENCODE_SLOTS     (2 * ENCODE_STACK) /* the next one can be written while all are live */
#define ENCODE_TNT_SHORT 6                  /* SDM: bits of a short TNT packet */
#define ENCODE_TNT_LONG  47                 /* SDM: bits of a long TNT packet */

/*
 * The CPU's clocks. The TSC and the core clock tick once a ns, at the ratio in the CBR packet. The
 * crystal, whose ticks MTC packets count, ticks once in ENCODE_TSC_PER_CTC ticks of the TSC (CPUID
 * 0x15: EBX this, EAX 1).
 */
#define ENCODE_CBR            10
#define ENCODE_TSC_PER_CTC    40
#define ENCODE_MTC_PERIOD_MAX 15

/* Which time packets are written besides TSC. */
struct encode_timing {
	bool mtc;
	bool cyc;
	uint8_t mtc_period; /* an MTC every 2^this ticks of the crystal */
};

/* The CPU's call stack. Each near return takes the address on top; it is compressed if it goes
 * there. */
struct encode_stack {
	uint64_t ip[ENCODE_SLOTS];
	uint32_t top;   /* slot the next push writes, modulo ENCODE_SLOTS */
	uint32_t depth; /* live entries, at most ENCODE_STACK */
};

/* The state that one owner of the CPU leaves to the next. */
struct encode_state {
	uint64_t head;     /* bytes ever written: running count */
	uint64_t next_psb; /* @head at which a PSB is due; 0 before the first */
	uint64_t last_ip;
	uint64_t tnt;      /* 1, then the pending bits, fewer than fill a packet: oldest first */
	uint8_t enabled;   /* PacketEn; these are no bool, which shared memory may not hold */
	uint8_t mode_sent; /* in the last MODE.Exec since the last PSB; 0: there was none */
	uint64_t now;      /* TSC of what is encoded; only with timing */
	uint64_t timed;    /* TSC of the last time packet */
	uint64_t mtc;      /* count of the last MTC's period */
	uint64_t paging;   /* payload of the last PIP; 0: the kernel is not traced */
	struct encode_stack calls; /* none at a PSB, an overflow, and when packets stop */
};

struct encode {
	/* Of the process that writes packets; never in shared memory. */
	uint8_t *ring;       /* the AUX area */
	uint64_t ring_size;  /* power of two */
	uint32_t psb_period; /* bytes between two PSBs */
	bool return_compression;
	uint64_t full_tnt; /* the bit of encode_state.tnt that says that a packet is full */
	uint8_t mode;      /* of the code: 64 or 32 */
	struct encode_timing timing;

	struct encode_state state;
};

/*
 * Continue from @state. Other processes can write to it, so it is copied once and the copy is
 * checked; no value in it can lead to a write outside the ring.
 *
 * Return: whether packets are missing because the last owner did not leave the CPU properly.
 */
bool encode_adopt(struct encode *encode, const struct encode_state *state);

/*
 * Initialize the encoder of a virtual CPU for 64-bit code, with no packets written and packets off.
 * @ring_size is a power of two of at least 4096. The owner of the CPU sets the ring itself.
 */
void encode_init(struct encode *encode, uint64_t ring_size, uint32_t psb_period,
		 bool return_compression, bool long_tnt);

/* Packets are off. What follows may go to another buffer, and cannot rely on what was written
 * before. */
void encode_forget(struct encode *encode);

/* Write a PSB+ while packets are off. @tsc is the present time. */
void encode_begin(struct encode *encode, uint64_t tsc);

/*
 * Start packets (TIP.PGE) at @ip, the first instruction that runs. @tsc is the present time. If no
 * PSB+ was written yet or one is due, it is written first. Packets must be off.
 */
void encode_enable(struct encode *encode, uint64_t ip, uint64_t tsc);

/* Stop packets after an instruction that leaves user code by itself, such as a system call. */
void encode_disable(struct encode *encode);

/* Stop packets because of an interruption before the instruction at @ip has run. */
void encode_disable_at(struct encode *encode, uint64_t ip);

/* An indirect jump or call, or a far transfer, went to @target. For a call, encode_push() is to be
 * called, too. */
void encode_indirect(struct encode *encode, uint64_t target);

/* An interruption before the instruction at @ip has run took control to @to. */
void encode_event(struct encode *encode, uint64_t ip, uint64_t to);

/* The page table is now @cr3. To be called only if the kernel is recorded. */
void encode_paging(struct encode *encode, uint64_t cr3);

/* A conditional branch was taken or not. */
void encode_cond(struct encode *encode, bool is_taken);

/* A near return went to @target. */
void encode_return(struct encode *encode, uint64_t target);

/* Write the pending conditional branches. */
void encode_flush(struct encode *encode);

/*
 * Set the time of what follows to @tsc, which does not go back, and write the time packets that are
 * due. Only needed with timing, and while packets are on.
 */
void encode_tick(struct encode *encode, uint64_t tsc);

/* Write a TSC packet. */
void encode_tsc(struct encode *encode, uint64_t tsc);

/* Write a PSB+ while packets are on. The instruction at @ip runs next. */
void encode_psb(struct encode *encode, uint64_t ip, uint64_t tsc);

/*
 * Write that packets were lost (OVF), drop what is pending, and switch packets off. This also
 * repairs the state of a CPU whose owner was killed: only the head is used.
 */
void encode_overflow(struct encode *encode, uint64_t tsc);

/* Start packets at @ip after an overflow, in code that is recorded. Packets must be off. */
void encode_resume(struct encode *encode, uint64_t ip);

/* --- what blocks do all the time -------------------------------------------------------------- */

static inline bool encode_is_timed(const struct encode *encode)
{
	return encode->timing.mtc || encode->timing.cyc;
}

static inline bool encode_psb_due(const struct encode *encode)
{
	return encode->state.head >= encode->state.next_psb;
}

/* A conditional branch was taken or not; or with no bits none is added. It is pending. */
static inline void encode_bits(struct encode *encode, bool is_taken, unsigned n_bits)
{
	encode->state.tnt = encode->state.tnt << n_bits | (is_taken & n_bits);
}

/* Do the pending branches fill a packet? Then encode_flush() is to be called. */
static inline bool encode_is_full(const struct encode *encode)
{
	return (encode->state.tnt & encode->full_tnt) != 0;
}

/* Return: whether a near return to @target is compressed. */
static inline bool encode_is_compressed(const struct encode *encode, uint64_t target)
{
	const struct encode_stack *calls = &encode->state.calls;

	return encode->return_compression && calls->depth > 0 &&
	       calls->ip[(calls->top - 1) % ENCODE_SLOTS] == target;
}

/* Return: whether it then writes no packet yet. */
static inline bool encode_return_waits(const struct encode *encode, uint64_t target)
{
	return encode_is_compressed(encode, target) && !(encode->state.tnt << 1 & encode->full_tnt);
}

/* A call, indirect or with a displacement other than 0, will return to @ip; or with @n_calls 0
 * there was none. */
static inline void encode_push(struct encode *encode, uint64_t ip, unsigned n_calls)
{
	struct encode_stack *calls = &encode->state.calls;

	calls->ip[calls->top % ENCODE_SLOTS] = ip;
	calls->top += n_calls;
	calls->depth += n_calls & (calls->depth < ENCODE_STACK);
}
