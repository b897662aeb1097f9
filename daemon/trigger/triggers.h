/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Triggers
 *
 * The conditions for which clients want a snapshot to be taken. Each has a number of snapshots that
 * may still be taken, a least time between two of them, and a time to wait between the moment when
 * the condition held and the snapshot. Triggers are kept in a file of the state directory, and are
 * armed again when the recorder starts.
 *
 * Everything happens in the event loop.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/proc/caller.h"
#include "daemon/trigger/probe.h"

#define TRIGGERS_MAX           32
#define TRIGGERS_CONDITION_MAX 1024                     /* with its NUL */
#define TRIGGERS_INTERVAL_MIN  UINT64_C(100000000)      /* ns */
#define TRIGGERS_TIME_MAX      UINT64_C(86400000000000) /* ns: a day */

typedef struct sd_event sd_event;
struct triggers;

/* What is asked for. */
struct trigger_wish {
	char condition[TRIGGERS_CONDITION_MAX];
	char comm[PROBE_COMM_MAX]; /* only threads of this name; "": all */
	uint32_t count;            /* of snapshots; at least 1 */
	uint64_t interval_ns;      /* from one hit to the next that counts */
	uint64_t delay_ns;         /* from the hit to the snapshot */
};

/* A trigger, as clients see it. */
struct trigger_state {
	uint32_t id;
	struct trigger_wish wish;
	uint32_t n_taken;
	uid_t uid;         /* who asked for it */
	const char *what;  /* "armed", "waiting" for the interval or the delay, or "failed" */
	const char *error; /* why it failed; NULL: it did not */
};

/*
 * Is called when a snapshot is to be taken: for @state, in the thread of @hit.
 *
 * Return: 0; or negative errno, and the snapshot does not count.
 */
typedef int (*triggers_take_fn)(void *userdata, const struct trigger_state *state,
				const struct probe_hit *hit);

/*
 * Read the file of the state directory @state_dir, and arm what is in it. A line that makes no
 * sense is logged and left out; a trigger that cannot be armed stays, as failed. @event and
 * @userdata are borrowed. The collector's socket is in @runtime_dir.
 *
 * Return: 0; or negative errno.
 */
_must_check_ int triggers_new(sd_event *event, const char *state_dir, const char *runtime_dir,
			      triggers_take_fn take, void *userdata,
			      struct triggers **ret_triggers);
struct triggers *triggers_free(struct triggers *triggers);

DEFINE_CLEANUP(struct triggers *, triggers_free);

/*
 * Add a trigger for the user @uid, and arm it.
 *
 * Return: 0 and @ret_id; -ENOSPC if there are too many; -EINVAL or another negative errno, and
 *         @reterr_message, which the caller frees.
 */
_must_check_ int triggers_add(struct triggers *triggers, const struct trigger_wish *wish, uid_t uid,
			      uint32_t *ret_id, char **reterr_message);

/* Return: 0; -ENOENT if there is none; or another negative errno if the file cannot be written, and
 *         then the trigger is removed until the recorder is started again. */
_must_check_ int triggers_remove(struct triggers *triggers, uint32_t id);

size_t triggers_count(const struct triggers *triggers);

/* Return: the trigger @i, by the time when it was added. Valid until the next call. */
struct trigger_state triggers_get(const struct triggers *triggers, size_t i);
