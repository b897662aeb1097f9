/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/tsc.h"

#define TSC_BITS 56
#define MTC_BITS 8
#define TMA_BITS 16
#define TMA_MASK 0xffffu

/* Cycles that a lost CYC packet stood for, at least, if MTC packets are as frequent as this. */
#define LOST_CYCLES       0xf00
#define LOST_MTC_FREQ_MAX 10

/* No packet begins there: the CYC stands right before the PSB. */
#define CYC_BEFORE_PSB UINT64_MAX

void tsc_forget_rate(struct tsc *tsc)
{
	tsc->has_rate = tsc->rate_has_mtc = tsc->rate_is_suspect = false;
	tsc->rate = tsc->header_tsc = tsc->header_cycles = tsc->rate_cycles = 0;
}

void tsc_forget(struct tsc *tsc)
{
	*tsc = (struct tsc){ .mtc_freq = tsc->mtc_freq,
			     .nom_freq = tsc->nom_freq,
			     .eax = tsc->eax,
			     .ebx = tsc->ebx,
			     .loses_cycles = tsc->loses_cycles };
}

static void set_rate(struct tsc *tsc, uint64_t ticks, uint64_t cycles)
{
	if (cycles == 0 || ticks > UINT64_MAX >> TSC_RATE_SHIFT)
		return;
	tsc->rate = (ticks << TSC_RATE_SHIFT) / cycles;
	tsc->has_rate = true;
}

/* Return: crystal ticks from count @from to count @to. Packets have the low bits of counts. */
static uint32_t ctc_between(const struct tsc *tsc, uint32_t from, uint32_t to)
{
	return to < from ? to + (1u << (tsc->mtc_freq + MTC_BITS)) - from : to - from;
}

static uint64_t ticks_of(const struct tsc *tsc, uint32_t ctc)
{
	const uint64_t ticks = (uint64_t)ctc * tsc->ebx;

	/* Nearly all crystals tick once in a whole number of ticks. */
	return tsc->eax == 1 ? ticks : tsc->eax > 0 ? ticks / tsc->eax : 0;
}

static void take_tsc(struct tsc *tsc, uint64_t value, bool in_psb, uint64_t at)
{
	/* Outside of a PSB+ it may stand behind a time without cycles. */
	if (in_psb && tsc->header_tsc && tsc->header_cycles && !tsc->rate_has_mtc && !tsc->has_tma)
		set_rate(tsc,
			 value < tsc->header_tsc
			     ? value + (UINT64_C(1) << TSC_BITS) - tsc->header_tsc
			     : value - tsc->header_tsc,
			 tsc->header_cycles);
	tsc->header_tsc = value;
	tsc->header_cycles = 0;

	if (!tsc->has_tsc || tsc->rate == 0 || tsc->counted > value || tsc->cyc_end == at ||
	    (in_psb && tsc->cyc_end == CYC_BEFORE_PSB))
		tsc->counted = value;
	tsc->has_tsc = true;
	tsc->has_tma = tsc->has_mtc = tsc->rate_has_mtc = false;
	tsc->now = tsc->base = value;
	tsc->ctc = 0;
}

static void take_tma(struct tsc *tsc, uint32_t ctc, uint64_t fast)
{
	const unsigned bits = tsc->mtc_freq + MTC_BITS;

	if (!tsc->has_tsc || tsc->has_tma || tsc->has_mtc || tsc->mtc_freq > 16)
		return;
	tsc->has_tma = true;
	tsc->base -= fast;
	/* If it has all bits of the count that an MTC has, it is as good as one. */
	tsc->has_mtc = bits <= TMA_BITS;
	tsc->ctc = ctc & ((1u << bits) - 1);
}

/* The TMA had fewer bits of the count than the first MTC behind it, which has the rest. */
static uint32_t complete_ctc(const struct tsc *tsc, uint32_t known, uint32_t ctc)
{
	uint32_t high = ctc & ~TMA_MASK;

	if ((ctc & TMA_MASK) < known)
		high = (high - (1u << TMA_BITS)) & (0xffu << tsc->mtc_freq);
	return known | high;
}

/* An MTC stands right behind a CYC: all cycles until there are counted. */
static void calibrate(struct tsc *tsc)
{
	const uint64_t ticks = tsc->base - tsc->rate_base, cycles = tsc->rate_cycles;
	const bool is_first = !tsc->rate_has_mtc, is_suspect = tsc->rate_is_suspect;

	tsc->rate_is_suspect = false;
	if (!is_first && cycles == 0)
		return;
	tsc->rate_has_mtc = true;
	tsc->rate_base = tsc->base;
	tsc->rate_cycles = 0;
	if (is_first || (is_suspect && ticks > ticks_of(tsc, 1u << tsc->mtc_freq)))
		return;
	if (is_suspect && tsc->mtc_freq < LOST_MTC_FREQ_MAX && tsc->has_rate &&
	    tsc->rate * (cycles + LOST_CYCLES) >> TSC_RATE_SHIFT < ticks)
		return;
	set_rate(tsc, ticks, cycles);
}

void tsc_take_mtc(struct tsc *tsc, uint8_t value, uint64_t at)
{
	const uint32_t ctc = (uint32_t)value << (tsc->mtc_freq & 31);
	const bool had_mtc = tsc->has_mtc, is_behind = tsc->cyc_end == at;
	uint32_t from = tsc->ctc;

	/* Between a TSC and its TMA the count cannot be told from one that went round. */
	if (tsc->mtc_freq > 16 || (tsc->has_tsc && !tsc->has_tma))
		return;
	tsc->has_mtc = true;
	tsc->ctc = ctc;
	if ((!had_mtc && !tsc->has_tma) || tsc->eax == 0 || tsc->ebx == 0)
		return;
	if (!had_mtc)
		from = complete_ctc(tsc, from, ctc);
	tsc->base += ticks_of(tsc, ctc_between(tsc, from, ctc));
	tsc->now = tsc->base;
	if (is_behind || tsc->counted > tsc->base)
		tsc->counted = tsc->base;
	if (is_behind)
		calibrate(tsc);
}

void tsc_take(struct tsc *tsc, const struct packet *packet, bool in_psb, uint64_t at)
{
	switch (packet->type) {
	case PACKET_TSC:
		take_tsc(tsc, packet->value, in_psb, at);
		return;
	case PACKET_TMA:
		take_tma(tsc, (uint32_t)packet->value, packet->extra);
		return;
	case PACKET_MTC:
		tsc_take_mtc(tsc, (uint8_t)packet->value, at);
		return;
	case PACKET_CYC:
		tsc_take_cycles(tsc, packet->value, at + packet->size);
		return;
	case PACKET_CBR:
		/* Outside of a PSB+ it says that the frequency is another from here on. */
		if (!in_psb)
			tsc_forget_rate(tsc);
		if (tsc->nom_freq > 0)
			set_rate(tsc, tsc->nom_freq, packet->value);
		return;
	default:
		return;
	}
}

void tsc_take_psb(struct tsc *tsc, uint64_t at)
{
	tsc->rate_is_suspect = tsc->loses_cycles;
	if (tsc->cyc_end == at)
		tsc->cyc_end = CYC_BEFORE_PSB;
}
