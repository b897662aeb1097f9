/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Encode
 *
 * The PT packets of one virtual CPU, written as the SDM (volume 3, "Intel Processor Trace") says a
 * CPU writes them. It knows nothing of QEMU: its input is what an instruction did, its output is
 * bytes in a ring. The state is plain data, because it lives in the pool's shared memory beside the
 * ring: whoever owns the CPU drives it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define ENCODE_STACK 64 /* SDM: depth of the return compression stack */

/* Two models of the CPU's call stack; a return is compressed only where both agree. */
struct encode_stack {
	uint64_t ip[ENCODE_STACK];
	uint32_t top;   /* slot the next push writes, modulo ENCODE_STACK */
	uint32_t depth; /* live entries, at most ENCODE_STACK */
};

struct encode {
	/* Configuration, set by encode_init(). */
	uint8_t *ring; /* mapping of the AUX area in the process that emits; set at each acquire */
	uint64_t ring_size;  /* power of two */
	uint32_t psb_period; /* bytes between two PSBs */
	bool return_compression;

	/* State. */
	uint64_t head;      /* bytes ever written: running count */
	uint64_t since_psb; /* bytes since the last PSB; UINT64_MAX before the first */
	uint64_t last_ip;
	uint64_t tnt;            /* pending bits, oldest is the highest */
	uint32_t n_tnt;          /* at most 47 */
	bool enabled;            /* PacketEn */
	bool mode_sent;          /* MODE.Exec was written since the last PSB */
	struct encode_stack sdm; /* pops on every return, cleared when packets stop */
	struct encode_stack ipt; /* libipt's: pops on compressed returns only, cleared at PSB */
};
