/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * When
 *
 * Between which times a stretch of user code ran, from a TIP.PGE (or the FUP after an overflow) on,
 * or the TIP by which the kernel, if it is traced, goes there: threads switch between stretches,
 * and the time known where one begins may be from before a switch. What lies ahead tells more: a
 * stretch in which time is told belongs to whoever ran then. The kernel's code is taken to be of
 * the thread of the time known.
 *
 * It walks over packets without code, only forward, over each byte of a span at most twice.
 */

#include <intel-pt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

/* TSC, both inclusive; 0: the time that is known where the stretch begins. */
struct when_bounds {
	uint64_t from;
	uint64_t to; /* UINT64_MAX: nothing later is told */
};

struct when;

/* @config: of the span; borrowed for the call. Return: 0, or -ENOMEM. */
_must_check_ int when_new(const struct pt_config *config, struct when **ret_when);
struct when *when_free(struct when *when);

DEFINE_CLEANUP(struct when *, when_free);

/*
 * Between which times the stretch ran whose packet begins or ends at @offset; offsets never
 * decrease. That is one time
 *	that is known there, if a packet that is the TIP.PGE's own told it: a TSC outside of PSB+;
 *	or a CYC, if MTC packets keep the count of cycles right, and it is in that time (@counts);
 *	or if it is the kernel's code;
 *	of the first packet of time in the stretch, if there is one;
 * and otherwise between that which is known and that which is told next behind it.
 */
struct when_bounds when_find(struct when *when, uint64_t offset, bool counts);

/*
 * The same of what the kernel returned to by a packet that ends before @offset, or by the first TIP
 * behind it; @offset as for when_find().
 */
struct when_bounds when_find_tip(struct when *when, uint64_t offset);
