/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Scan
 *
 * A walk over packets that needs no code. It knows, after each packet, all that a PSB+ there would
 * repeat, and so finds where decoding can go on after an error, before the next PSB: at the first
 * packet that says where execution is.
 *
 * It only goes forward, over each byte of a span at most once.
 */

#include <intel-pt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Room for the longest PSB+ that is made. */
#define SCAN_PSB_MAX 80

enum {
	SCAN_PSB = 1, /* none before the next PSB, or the end */
};

/* A packet that says where execution is. */
struct scan_point {
	uint64_t offset; /* behind it */
	uint64_t ip;
	bool asks; /* since the walk was asked, packets told of time or of another page table */
	bool has_paging; /* it is known which one it is: */
	uint64_t cr3;
	bool non_root;
};

struct scan;

/* @config: of the span; borrowed for the call. Return: 0, or -ENOMEM. */
_must_check_ int scan_new(const struct pt_config *config, struct scan **ret_scan);
struct scan *scan_free(struct scan *scan);

DEFINE_CLEANUP(struct scan *, scan_free);

/* Walk to the first such packet that ends behind @from. Return: 0, or SCAN_PSB. */
_must_check_ int scan_find(struct scan *scan, uint64_t from, struct scan_point *ret_point);

/*
 * Make the PSB+ that would stand behind the packet found last.
 *
 * Return: its size; 0 if there is no memory, or the packets before it said what cannot be repeated.
 */
size_t scan_make_psb(const struct scan *scan, uint64_t ip, uint8_t ret_bytes[static SCAN_PSB_MAX]);
