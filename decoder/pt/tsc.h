/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tsc
 *
 * The time stamp counter as packets tell it. A TSC packet has all of it. A TMA behind that relates
 * it to the crystal's count, which each MTC carries on. Between these, CYC packets count the
 * core's cycles. A CBR packet says how long these are; how long they really were between
 * two MTC packets is the better measure, as soon as there were two.
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

	/* Since the last TSC or MTC packet. */
	uint64_t base;       /* the TSC there */
	uint64_t fast;       /* TSC ticks since, by cycles */
	uint32_t ctc;        /* the crystal's count there, as far as packets have it */
	uint32_t ctc_cycles; /* the same where cycles were counted from */
	bool has_tma, has_mtc, lost_cycles;

	/* TSC ticks in 256 cycles; has_rate. */
	bool has_rate;
	uint64_t rate;

	/* What measures that. */
	uint64_t header_tsc, header_cycles; /* at the last TSC packet, and cycles since */
	uint32_t rate_ctc;                  /* at the last MTC, and cycles since: */
	uint64_t rate_cycles;
	bool rate_has_mtc, rate_is_suspect;
};

/* Take @packet, which is one of time; @in_psb: it stands in a PSB+. */
void tsc_take(struct tsc *tsc, const struct packet *packet, bool in_psb);

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

/* Return: how many of @cycles passed since the last MTC, if they are counted from before it. */
uint64_t tsc_cycles_since(const struct tsc *tsc, uint64_t cycles);

/* Take a CYC of @cycles. */
static inline void tsc_take_cycles(struct tsc *tsc, uint64_t cycles)
{
	tsc->rate_cycles += cycles;
	tsc->header_cycles += cycles;
	if (tsc->rate == 0) {
		tsc->lost_cycles = true;
		return;
	}
	if (tsc->fast == 0 && tsc->ctc != tsc->ctc_cycles)
		cycles = tsc_cycles_since(tsc, cycles);
	tsc->fast += cycles * tsc->rate >> TSC_RATE_SHIFT;
	tsc->now = tsc->base + tsc->fast;
}

/* Take an MTC with @value of the crystal's count. */
void tsc_take_mtc(struct tsc *tsc, uint8_t value);

/* A PSB begins. */
void tsc_take_psb(struct tsc *tsc);

/* What was measured does not hold any more: packets were lost. */
void tsc_forget_rate(struct tsc *tsc);

/* Nothing is known any more. */
void tsc_forget(struct tsc *tsc);
