/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ran
 *
 * Puts what a program's code log says that it ran into its address space, over what mappings and
 * jitdumps say that is there. Where these have the same bytes they stay, and with them the names;
 * elsewhere the log's bytes are mapped, at the time at which either of the two changed, with the
 * name that a jitdump gives to the code there.
 *
 * Of a file that is mapped, only what the log says to have changed counts: the first bytes that the
 * log has are of memory that was there before or after it.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "decoder/jit/codelog.h"
#include "util/vec.h"

/* Pieces that are looked at for all spaces together, and bytes compared: more than real programs
 * need. Behind that the space stays as the mappings have it, but for code that is not known. */
#define RAN_WORK_MAX (UINT64_C(1) << 32)

struct ran_names;

struct rans {
	struct objects *objects; /* borrowed */
	const struct object *unknown;
	uint64_t work;                 /* left */
	VEC(struct ran_names *) names; /* of the logs' code; owned */
};

/* Return: 0 or -ENOMEM. */
_must_check_ int rans_init(struct rans *rans, struct objects *objects);
void rans_deinit(struct rans *rans);

/* Put @log, which must outlive the space, into it: all its mappings are there. Return: 0 or
 * -ENOMEM. */
_must_check_ int rans_apply(struct rans *rans, struct space *space, const struct codelog *log);
