/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PSB
 *
 * The bytes of a PSB packet, which are found in PT without reading any other packet.
 *
 * Source: SDM volume 3, chapter "Intel Processor Trace", section "Packet Stream Boundary (PSB)
 * packet".
 */

#include <stdint.h>

#include "util/window.h"

#define PSB_SIZE 16

static const uint8_t psb_bytes[PSB_SIZE] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
					     0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };

/* Return: the offset of the first PSB at or after @from; the size of all bytes if there is none. */
static inline uint64_t psb_find(struct window *window, uint64_t from)
{
	return window_find(window, from, psb_bytes, PSB_SIZE);
}
