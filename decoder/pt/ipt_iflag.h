/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interrupt flag
 *
 * Where events are traced, a change of the interrupt flag is told by a MODE.Exec packet and the
 * address of the instruction that changed it. libipt 2.0.5 knows such an address only as where an
 * interruption happened, and would look for its target. So these packets are made into what libipt
 * takes for the news that there is no transaction at that address, which is none.
 *
 * Source: SDM volume 3, chapter "Intel Processor Trace", MODE packets and event trace.
 */

#include <intel-pt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/pt/ipt_walk.h"

struct ipt_iflag {
	uint64_t looked;      /* offset up to which bytes were looked at */
	struct ipt_walk walk; /* over packets, once something looked like a flag that is set */
	bool walks;
	bool is_status; /* since a PSB or overflow, no address followed: modes are only repeated */
	uint64_t mode; /* offset of a MODE.Exec since which no other than timing packets followed */
	bool has_mode;
};

/* Look at what is ahead of @offset, far enough for one call of libipt's. Its bytes must be
 * writable. */
void ipt_iflag_look(struct ipt_iflag *iflag, const struct pt_config *config, uint64_t offset);
void ipt_iflag_deinit(struct ipt_iflag *iflag);
