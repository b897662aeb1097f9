/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tsc
 *
 * The time stamp counter as packets tell it. A TSC packet has all of it. A TMA behind that relates
 * it to the crystal's count, which each MTC carries on. Between these, CYC packets count the
 * core's cycles. A CBR packet says how long these are; how long they really were between
 * two MTC packets is the better measure, as soon as there were two right behind CYC packets.
 *
 * A CYC counts the cycles since the last CYC. With a threshold there is none before most other
 * packets: then the next one also counts cycles that passed before a TSC or MTC.
 *
 * Source: SDM volume 3, chapter "Intel Processor Trace", section "Tracking time-stamp counter".
 */

#include <stdbool.h>
#include <stdint.h>

#include "decoder/pt/packet.h"

#define TSC_RATE_SHIFT 8

struct tsc {
	uint8_t mtc_freq, nom_freq;
	uint32_t eax, ebx; /* of CPUID leaf 0x15: crystal ticks and TSC ticks in the same time */
	bool loses_cycles; /* erratum SKL168: a CYC before a PSB may be lost */
	bool has_tsc;      /* before that there is no time */
	uint64_t now;      /* the TSC at the last packet of time */

	uint64_t base; /* the TSC at the last tick of the crystal that a TMA or MTC is of */
	uint32_t ctc;  /* the crystal's count there, as far as packets have it */
	bool has_tma, has_mtc;

	uint64_t counted; /* the TSC up to which cycles are counted */
	uint64_t cyc_end; /* offset behind the last CYC */

	/* TSC ticks in 256 cycles; has_rate. */
	bool has_rate;
	uint64_t rate;

	/* What measures that. */
	uint64_t header_tsc, header_cycles; /* at the last TSC packet, and cycles since */
	uint64_t rate_base;                 /* the TSC at the last MTC behind a CYC, */
	uint64_t rate_cycles;               /* and cycles since */
	bool rate_has_mtc, rate_is_suspect;
};

/* Take @packet, which is one of time and stands at offset @at; @in_psb: it stands in a PSB+. */
void tsc_take(struct tsc *tsc, const struct packet *packet, bool in_psb, uint64_t at);

/* Return: whether MTC packets carry on the crystal's count, which relates cycles to the TSC. */
static inline bool tsc_counts(const struct tsc *tsc)
{
	return tsc->has_tma && tsc->eax > 0 && tsc->ebx > 0;
}

/* Return: whether a packet of @type will say what the TSC is; a CYC only says that it goes on. */
static inline bool tsc_tells(const struct tsc *tsc, enum packet_type type)
{
	return type == PACKET_TSC || (type == PACKET_MTC && tsc_counts(tsc));
}

/* Take a CYC of @cycles, which ends at offset @end. */
static inline void tsc_take_cycles(struct tsc *tsc, uint64_t cycles, uint64_t end)
{
	tsc->rate_cycles += cycles;
	tsc->header_cycles += cycles;
	tsc->cyc_end = end;
	tsc->counted += cycles * tsc->rate >> TSC_RATE_SHIFT;
	if (tsc->counted < tsc->now)
		tsc->counted = tsc->now;
	tsc->now = tsc->counted;
}

/* Take an MTC at offset @at with @value of the crystal's count. */
void tsc_take_mtc(struct tsc *tsc, uint8_t value, uint64_t at);

/* A PSB begins at offset @at. */
void tsc_take_psb(struct tsc *tsc, uint64_t at);

/* What was measured does not hold any more: packets were lost. */
void tsc_forget_rate(struct tsc *tsc);

/* Nothing is known any more. */
void tsc_forget(struct tsc *tsc);
