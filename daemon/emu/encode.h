/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Encode
 *
 * The PT packets of one virtual CPU, written as the SDM (volume 3, "Intel Processor Trace") says a
 * CPU writes them. It knows nothing of QEMU: its input is what an instruction did, its output is
 * bytes in a ring. The state that the CPU's next owner goes on from is plain data without pointers,
 * because it lies in the pool's shared memory beside the ring while nobody owns the CPU.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define ENCODE_STACK   64 /* SDM: depth of the return compression stack */
#define ENCODE_TNT_MAX 47 /* SDM: bits of a long TNT packet */

/*
 * The CPU's clocks. The TSC ticks once a ns and so does the core, at the ratio that CBR tells; the
 * crystal, whose ticks MTC packets count, once in ENCODE_TSC_PER_CTC (CPUID 0x15: EBX this, EAX 1).
 */
#define ENCODE_CBR            10
#define ENCODE_TSC_PER_CTC    40
#define ENCODE_MTC_PERIOD_MAX 15

/* Time packets on request, besides TSC. */
struct encode_timing {
	bool mtc;
	bool cyc;
	uint8_t mtc_period; /* an MTC every 2^this ticks of the crystal */
};

/* Two models of the CPU's call stack; a return is compressed only where both agree. */
struct encode_stack {
	uint64_t ip[ENCODE_STACK];
	uint32_t top;   /* slot the next push writes, modulo ENCODE_STACK */
	uint32_t depth; /* live entries, at most ENCODE_STACK */
};

/* What one owner of the CPU leaves to the next. */
struct encode_state {
	uint64_t head;      /* bytes ever written: running count */
	uint64_t since_psb; /* bytes since the last PSB; UINT64_MAX before the first */
	uint64_t last_ip;
	uint64_t tnt;            /* pending bits, oldest is the highest */
	uint32_t n_tnt;          /* at most 47 */
	uint8_t enabled;         /* PacketEn; these are no bool, which shared memory may not hold */
	uint8_t mode_sent;       /* that MODE.Exec told last, since the last PSB; 0: none did */
	uint64_t now;            /* TSC of what is encoded; only with timing */
	uint64_t told;           /* up to which TSC time packets have told it */
	uint64_t mtc;            /* count of the last MTC's period */
	uint64_t paging;         /* payload of the last PIP; 0: the kernel is not traced */
	struct encode_stack sdm; /* pops on every return, cleared when packets stop */
	struct encode_stack ipt; /* libipt's: pops on compressed returns only, cleared at PSB */
};

struct encode {
	/* Of the process that emits: never in shared memory. */
	uint8_t *ring;       /* the AUX area */
	uint64_t ring_size;  /* power of two */
	uint32_t psb_period; /* bytes between two PSBs */
	bool return_compression;
	uint8_t mode; /* of the code: 64 or 32 */
	struct encode_timing timing;

	struct encode_state state;
};

/*
 * Go on where @state stands, which lies in memory that other processes write, too: it is copied
 * once, the copy is checked, and nothing in it can lead a write out of the ring.
 *
 * Return: whether packets are missing: its last owner did not leave it as one does.
 */
bool encode_adopt(struct encode *encode, const struct encode_state *state);

/*
 * Make a virtual CPU's encoder, of 64-bit code: nothing written, packets off. @ring_size is a power
 * of two of at least 4096; the ring itself is set by whoever acquires the CPU.
 */
void encode_init(struct encode *encode, uint64_t ring_size, uint32_t psb_period,
		 bool return_compression);

/*
 * Start packets (TIP.PGE) at @ip, the first instruction that runs. @tsc is the time now; a PSB+
 * goes first if none was written yet or one is due. Packets must be off.
 */
void encode_enable(struct encode *encode, uint64_t ip, uint64_t tsc);

/* Stop packets after an instruction that leaves user code itself: a system call. */
void encode_disable(struct encode *encode);

/* Stop packets because of something from outside. @ip is the instruction that has not run. */
void encode_disable_at(struct encode *encode, uint64_t ip);

/* A direct call whose displacement is not 0, or an indirect one, returns to @ip. */
void encode_push(struct encode *encode, uint64_t ip);

/* An indirect jump or call, or a far transfer, went to @target. A call is also pushed. */
void encode_indirect(struct encode *encode, uint64_t target);

/* Something from outside took control to @to, before the instruction at @ip has run. */
void encode_event(struct encode *encode, uint64_t ip, uint64_t to);

/* The address space is now that of @cr3. Only where the kernel is traced. */
void encode_paging(struct encode *encode, uint64_t cr3);

/* A near return went to @target. */
void encode_return(struct encode *encode, uint64_t target);

/* Write the conditional branches that are pending. */
void encode_flush(struct encode *encode);

/*
 * What follows happens at @tsc, which does not go back: time packets that are due meanwhile are
 * written. Only needed with timing, and while packets are on.
 */
void encode_tick(struct encode *encode, uint64_t tsc);

/* A time packet. */
void encode_tsc(struct encode *encode, uint64_t tsc);

/* A PSB+ while packets are on: the instruction at @ip runs next. */
void encode_psb(struct encode *encode, uint64_t ip, uint64_t tsc);

/*
 * Say that packets were lost (OVF), and be off. What was pending is dropped. It also mends the
 * state of a CPU whose owner was killed: only the head is taken as it is.
 */
void encode_overflow(struct encode *encode, uint64_t tsc);

/* Packets go on at @ip after an overflow, in code that they cover. They must be off. */
void encode_resume(struct encode *encode, uint64_t ip);

static inline bool encode_is_timed(const struct encode *encode)
{
	return encode->timing.mtc || encode->timing.cyc;
}

static inline bool encode_psb_due(const struct encode *encode)
{
	return encode->state.since_psb >= encode->psb_period;
}

/* A conditional branch was taken, or was not. */
static inline void encode_cond(struct encode *encode, bool taken)
{
	encode->state.tnt = encode->state.tnt << 1 | taken;
	if (++encode->state.n_tnt == ENCODE_TNT_MAX)
		encode_flush(encode);
}
