/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copy lane
 *
 * What one thread of the copier (daemon/objects/copier.h) asks the collector for: it finds, hashes
 * and copies one file after the other. A disk or a file server may not answer, so a lane has a
 * longest time for each file, and other threads can see whether the collector reads on.
 *
 * Only its thread asks. The other functions are to be called in any thread.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct buildid;
struct collector_answer;
struct collectorlink;
struct object;

struct copylane {
	bool is_claimed;         /* see struct source_facts; set before there are files */
	const atomic_bool *stop; /* borrowed: what it asks for ends once this is true */

	/* The thread's own. */
	struct collectorlink *link;
	bool gave_up; /* the last request found no collector */

	pthread_mutex_t lock; /* for what follows */
	int hashed_fd;        /* where the collector says how much it has read */
	bool waits;           /* for the collector, which waits for a disk or a server */
	int copy_fd;          /* to which the copy is being written; or -1 */
	uint64_t done;        /* bytes that were read and copied at the last look */
	uint64_t done_at;     /* since when there have been no more */
};

/* A lane that was not made. */
#define COPYLANE_NONE \
	((struct copylane){ .lock = PTHREAD_MUTEX_INITIALIZER, .hashed_fd = -1, .copy_fd = -1 })

/* Make a lane, which may be deinitialized even if this fails. Return: 0, or negative errno. */
_must_check_ int copylane_init(struct copylane *lane, const atomic_bool *stop,
			       const char *runtime_dir);
void copylane_deinit(struct copylane *lane);

/* Another file begins. */
void copylane_begin(struct copylane *lane);

/* Find the original of @object, whose build-id is compared. Return: as original_find(). */
_must_check_ int copylane_find(struct copylane *lane, const struct object *object, int *ret_fd);

/* Have the original hashed for which @fd stands. Return: 0; -ESTALE if its build-id is another one;
 * -ETIMEDOUT if that takes too long; or another error of collectorlink_ask(). */
_must_check_ int copylane_hash(struct copylane *lane, const struct object *object, int fd,
			       struct collector_answer *ret_answer);

/* Have at most @size bytes of the original copied to @to. The file may grow meanwhile. Return: as
 * copylane_hash(). */
_must_check_ int copylane_copy(struct copylane *lane, const struct object *object, int fd,
			       uint64_t size, int to);

/* Return: whether it waits for the collector, and nothing has been read for so long. */
bool copylane_stands(struct copylane *lane, uint64_t ns);
