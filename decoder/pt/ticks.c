/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ticks.h"

void ticks_init(struct ticks *ticks, const struct pt_config *config)
{
	*ticks = (struct ticks){
		.mtc_freq = config->mtc_freq,
		.eax = config->cpuid_0x15_eax,
		.ebx = config->cpuid_0x15_ebx,
	};
}

static void take_tma(struct ticks *ticks, const struct pt_packet_tma *tma)
{
	ticks->has_crystal =
	    ticks->has_tsc && ticks->eax > 0 && ticks->ebx > 0 && ticks->mtc_freq < 16;
	ticks->crystal_tsc = ticks->tsc - tma->fc;
	ticks->ctc = tma->ctc;
	ticks->periods = 0;
	ticks->mtc = ticks->has_crystal ? (uint8_t)(tma->ctc >> ticks->mtc_freq) : 0;
	/* It has 16 bits of the count, which may not be all that the next MTC has. */
	ticks->mtc_mask =
	    ticks->mtc_freq > 8 ? (uint8_t)((1u << (16 - ticks->mtc_freq)) - 1) : UINT8_MAX;
}

bool ticks_take(struct ticks *ticks, const struct pt_packet *packet)
{
	switch (packet->type) {
	case ppt_tsc:
		ticks->tsc = packet->payload.tsc.tsc;
		ticks->has_tsc = true;
		ticks->has_crystal = false;
		return true;
	case ppt_tma:
		take_tma(ticks, &packet->payload.tma);
		return false;
	case ppt_mtc:
		ticks->periods += (uint8_t)(packet->payload.mtc.ctc - ticks->mtc) & ticks->mtc_mask;
		ticks->mtc = packet->payload.mtc.ctc;
		ticks->mtc_mask = UINT8_MAX;
		return ticks->has_crystal;
	default:
		return false;
	}
}

uint64_t ticks_ctc(const struct ticks *ticks)
{
	if (ticks->periods == 0)
		return ticks->ctc;
	return ((uint64_t)(ticks->ctc >> ticks->mtc_freq) + ticks->periods) << ticks->mtc_freq;
}

uint64_t ticks_now(const struct ticks *ticks)
{
	if (!ticks->has_crystal)
		return ticks->tsc;
	return ticks->crystal_tsc + (ticks_ctc(ticks) - ticks->ctc) * ticks->ebx / ticks->eax;
}
