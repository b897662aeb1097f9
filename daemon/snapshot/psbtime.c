/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/psbtime.h"

#include <string.h>

#include "base/cursor.h"
#include "util/psb.h"

#define TSC_BYTES 7u /* of the packet's payload */
#define TSC_MASK  ((UINT64_C(1) << 8 * TSC_BYTES) - 1)

enum {
	PACKET_PAD = 0x00,
	PACKET_TSC = 0x19,
};

/* The packet behind a PSB. */
static bool read_tsc(struct cursor *c, uint64_t *ret_tsc)
{
	uint8_t byte = PACKET_PAD, bytes[sizeof(uint64_t)] = {};

	while (byte == PACKET_PAD)
		if (cursor_get(c, 1, &byte) < 0)
			return false;
	if (byte != PACKET_TSC || cursor_get(c, TSC_BYTES, bytes) < 0)
		return false;
	memcpy(ret_tsc, bytes, sizeof(*ret_tsc));
	return true;
}

bool psbtime_find(const uint8_t *pt, size_t size, uint64_t *ret_tsc)
{
	const uint8_t *at = pt, *end = pt + size;

	while ((at = memmem(at, (size_t)(end - at), psb_bytes, PSB_SIZE))) {
		struct cursor c = cursor_from(at + PSB_SIZE, (size_t)(end - at) - PSB_SIZE);

		if (read_tsc(&c, ret_tsc))
			return true;
		/* The end of another packet may look like the beginning of a PSB. */
		at += 2;
	}
	return false;
}

uint64_t psbtime_tsc(uint64_t low, uint64_t now)
{
	return now - ((now - low) & TSC_MASK);
}
