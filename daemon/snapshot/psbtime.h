/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Psbtime
 *
 * Since when the PT of a ring can be decoded: the time at its first PSB. It is all that the daemon
 * reads of packets, so that it can say how far back a snapshot reaches without decoding it.
 *
 * Source: SDM, volume 3, "PSB packet", "TSC packet", "PAD packet".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Find the first PSB in the @size bytes at @pt that a TSC packet follows, with nothing but padding
 * between. Return: whether there is one; @ret_tsc is the lower 56 bits of the TSC. */
_must_check_ bool psbtime_find(const uint8_t *pt, size_t size, uint64_t *ret_tsc);

/* The TSC of which @low are the lower 56 bits, and that was not later than @now. */
uint64_t psbtime_tsc(uint64_t low, uint64_t now);
