/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PSB time
 *
 * Finds the time of the first PSB in the PT of a ring. From this time on the PT can be decoded, so
 * the daemon can say how far back a snapshot reaches. The daemon reads no other packets.
 *
 * Source: SDM, volume 3, "PSB packet", "TSC packet", "PAD packet".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Find the first PSB in the @size bytes at @pt that is followed by a TSC packet, with nothing but
 * padding between. Return: whether there is one; @ret_tsc is the lower 56 bits of its TSC. */
_must_check_ bool psbtime_find(const uint8_t *pt, size_t size, uint64_t *ret_tsc);

/* Return: the latest TSC, not later than @now, whose lower 56 bits are @low. */
uint64_t psbtime_tsc(uint64_t low, uint64_t now);
