/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ipt recover
 *
 * How libipt goes on behind an error, before the next PSB. It can begin at a PSB+ only. So a walk
 * of ours follows to the error, and walk_recover() finds the next packet that says where execution
 * is; then the PSB+ is made that a CPU would write there.
 */

#include <stddef.h>
#include <stdint.h>

#include "decoder/pt/walk.h"

/* Room for the longest PSB+. */
#define IPT_RECOVER_PSB_MAX 80

/* Let @walk come to @offset, where libipt stands, or to the first branch or event behind it. */
void ipt_recover_follow(struct walk *walk, uint64_t offset);

/* Make the PSB+ for where @walk stands: with execution at @ip. Return: its size. */
size_t ipt_recover_make_psb(const struct walk *walk, uint64_t ip,
			    uint8_t ret_bytes[static IPT_RECOVER_PSB_MAX]);
