/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ticks
 *
 * The TSC as packets tell it: TSC packets, and between them the crystal's count, which a TMA packet
 * relates to the TSC and each MTC packet carries on. Not CYC packets.
 *
 * Source: SDM volume 3, chapter "Intel Processor Trace", TSC, TMA and MTC packets.
 */

#include <intel-pt.h>
#include <stdbool.h>
#include <stdint.h>

struct ticks {
	uint8_t mtc_freq;
	uint32_t eax, ebx; /* of CPUID leaf 0x15: crystal ticks and TSC ticks in the same time */

	bool has_tsc;
	uint64_t tsc; /* of the last TSC packet */

	/* The crystal's count, as a TMA begins it and each MTC goes on with it. */
	bool has_crystal;
	uint64_t crystal_tsc; /* when the count was @ctc */
	uint16_t ctc;         /* of the TMA */
	uint64_t periods;     /* of MTC, that are over since */
	uint8_t mtc;          /* the payload that an MTC had last, or would have had at the TMA */
	uint8_t mtc_mask;     /* what of that is known */
};

void ticks_init(struct ticks *ticks, const struct pt_config *config);

/* Take @packet if it is one of time. Return: whether time is known and @packet told it. */
bool ticks_take(struct ticks *ticks, const struct pt_packet *packet);

/* Return: the TSC at the packet of time taken last; 0 before the first TSC packet. */
uint64_t ticks_now(const struct ticks *ticks);

/* The crystal's count at that packet, as far as it goes beyond 16 bits; ticks->has_crystal. */
uint64_t ticks_ctc(const struct ticks *ticks);
