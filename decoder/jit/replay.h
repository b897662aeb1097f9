/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Replay
 *
 * Replays the code log of a program into its address space: at each time, the space has the bytes
 * that the log states, instead of what mappings and jitdumps state. Where both have the same bytes,
 * the mapping stays, and with it the names of the code. Elsewhere the log's bytes are mapped, from
 * the time on at which the log or the mappings changed, with the name that a jitdump gives to the
 * code there.
 *
 * Where a file is mapped, only the changes in the log count. The bytes with which the log begins
 * may be of memory that was there before or after the file.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/jit/codelog.h"
#include "util/vec.h"

/*
 * How many pieces of logs and mappings are looked at, for all spaces together, counting compared
 * bytes too. It is more than real programs need. When the limit is reached, a space stays as its
 * mappings are, except that no code is known from that time on.
 */
#define REPLAY_WORK_MAX (UINT64_C(1) << 32)

struct replay_names;

struct replay {
	struct objects *objects;          /* borrowed */
	const struct object *unknown;     /* has no bytes */
	uint64_t work;                    /* what is left of REPLAY_WORK_MAX */
	VEC(struct replay_names *) names; /* of code in logs; owned */
};

/* @objects is borrowed. Return: 0 or -ENOMEM. */
_must_check_ int replay_init(struct replay *replay, struct objects *objects);

/* The spaces into which logs were replayed must not be used for names any more. */
void replay_deinit(struct replay *replay);

/*
 * Replay @log into @space, whose mappings are complete. @log and @replay must outlive @space.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int replay_log(struct replay *replay, struct space *space, const struct codelog *log);
