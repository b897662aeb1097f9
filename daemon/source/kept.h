/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kept state
 *
 * What ptd remembers of its rings, in a memfd, so that a ptd that is started after it was killed
 * goes on from there: how far the streams were drained, and the task records of the sideband.
 *
 * ptd may be killed at any instruction. So the memfd has two copies of the state and a number that
 * says which one holds. ptd changes a draft, in memory of its own, and publishes it as a whole.
 * Records lie in slots of one size, which only grow at their end; the state says how much of each
 * holds. A slot that is freed is not used again before the next state is published, because the
 * present one may still count on it.
 *
 * The file belongs to ptd and its keeper, and no recorded program ever sees it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define KEPT_VERSION     8u
#define KEPT_SLOT_SIZE   ((size_t)128 << 10)
#define KEPT_STREAMS_MAX 16u
#define KEPT_WRITERS_MAX 64u
#define KEPT_CPUS_MAX    1024u

/* A row of slots: all but the last are full. */
struct kept_row {
	uint32_t n_slots;
	uint32_t last_used; /* bytes */
};

struct kept_epoch {
	uint64_t since_ns;
	struct kept_row head, body;
};

/* The task records of one user: struct stream has the same names. */
struct kept_stream {
	bool is_used, has_before;
	uint32_t uid;
	uint64_t n_epochs, time, n_dropped;
	struct kept_epoch before, now;
};

/* Of the sideband: struct sideband has the same names. */
struct kept_sideband {
	uint64_t n_epochs;
	uint64_t time, lost, lost_unmarked, n_repeats;
	uint64_t before_since_ns, now_since_ns;
	bool has_before, asking, torn;
	struct kept_stream streams[KEPT_STREAMS_MAX];
};

/* How far the ring of task records of a CPU was drained. The event's id tells whether it is that
 * ring, because a CPU's ring may be opened anew after the state was published. */
struct kept_drained {
	uint64_t event_id; /* 0: there was no ring */
	uint64_t tail;
};

/* The pool of the software source. */
struct kept_pool {
	bool timing; /* a program was asked to write MTC and CYC packets */
	uint64_t task_tail, code_tail;
	uint64_t code_drained_ns;
	uint64_t lost_ns; /* when task records were lost last; 0: never */
	uint32_t n_writers;
	uint32_t writers[KEPT_WRITERS_MAX]; /* processes that wrote records, not known to be dead */
};

struct kept_state {
	uint64_t made_ns;       /* on CLOCK_MONOTONIC: when the rings were made */
	uint64_t taken_over_ns; /* likewise: when a process took them over last; 0: none did */
	struct kept_sideband sideband;

	/* Of the software source. */
	struct kept_pool pool;
	uint64_t n_tasks_lost; /* task records */
	/* Bytes of code that was in no file: what this process has, and what those before it had,
	 * which did not outlive them. */
	uint64_t code_bytes, code_lost_bytes;

	/* Of hardware. */
	int64_t suspended_ns; /* that the machine had spent suspended when its rings were opened */
	struct kept_drained drained[KEPT_CPUS_MAX];
};

struct kept;

/* Make an empty state in a file of its own. Return: 0, or negative errno. */
_must_check_ int kept_new(struct kept **ret_kept);

/* Go on with the state that another process published in the file @fd, which becomes the kept
 * state's. The draft says that it was taken over, and that the other process's code is lost.
 * Return: 0; -EBADMSG if there is none, and @fd is still the caller's, or negative errno. */
_must_check_ int kept_resume(int fd, struct kept **ret_kept);

/* Free it; slots that were mapped stay mapped until they are freed. Return: NULL. */
struct kept *kept_free(struct kept *kept);

DEFINE_CLEANUP(struct kept *, kept_free);

/* Return: the file, which stays the kept state's. */
int kept_fd(const struct kept *kept);

/* Return: whether it goes on from another process. */
bool kept_is_resumed(const struct kept *kept);

/* Return: the draft of the next state. */
struct kept_state *kept_draft(struct kept *kept);

/* Publish the draft. */
void kept_publish(struct kept *kept);

/* Return: KEPT_SLOT_SIZE bytes of zeros that are kept, or that are not if @kept is NULL; NULL if
 *         there is no memory. */
void *kept_slot_new(struct kept *kept);

/* Free a slot of kept_slot_new() or kept_slot_next(). @kept may have been freed if it is given as
 * NULL. Return: NULL. */
void *kept_slot_free(struct kept *kept, void *slot);

/* Map the slots of the other process one by one, beginning with *@at of 0. Those that are of no use
 * are to be freed. Return: 0; -ENOENT if there are no more; or -ENOMEM. */
_must_check_ int kept_slot_next(struct kept *kept, size_t *at, void **ret_slot);
