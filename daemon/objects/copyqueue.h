/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copy queue
 *
 * The objects that wait for the copier (daemon/objects/copier.h), and those that its lanes copy
 * now. It says which one comes next: the askers (daemon/objects/asker.h) and the
 * owners of their files take turns, and lanes work for one asker at a time. It also says for which
 * objects there is no use in waiting: too much is before them, or the lanes before them stand
 * still.
 *
 * The copier's lock is held when these functions are called.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/objects/copylane.h"
#include "daemon/spool/storedir.h"

struct object;

#define COPYQUEUE_LANES STOREDIR_SLOTS

/* Number of askers, and of owners of files, that are distinguished. If there are more, some count
 * as one. */
#define COPYQUEUE_ASKERS 64u

#define COPYQUEUE_DISKS 3u

/* Objects in their order, with a reference to each. */
struct copylist {
	struct object *first, *last;
};

void copylist_push(struct copylist *list, struct object *object);

/* Return: the first object; NULL if there is none. */
struct object *copylist_pop(struct copylist *list);

struct copyqueue {
	struct copyqueue_turn {
		struct copylist waiting; /* of one asker and one owner */
		uint64_t served;         /* bytes copied since the queue was last empty */
	} turns[COPYQUEUE_ASKERS];
	size_t n_waiting;
	struct copylane *lanes[COPYQUEUE_LANES];     /* borrowed */
	const struct object *taken[COPYQUEUE_LANES]; /* what each of them copies, or NULL */
	uint64_t hung[COPYQUEUE_ASKERS];   /* when a file of these askers was not read on, or 0 */
	uint64_t waited[COPYQUEUE_ASKERS]; /* ns that the present snapshot waited for them */
	uint64_t waited_strange; /* and for files of which neither asker nor server is known */
	uint64_t disks[COPYQUEUE_DISKS]; /* file systems that no user serves */
};

/* Have the object wait, with a reference that passes to the queue. */
void copyqueue_add(struct copyqueue *queue, struct object *object);

/* Return: whether a lane that has nothing to do may take the object. */
bool copyqueue_may_take(const struct copyqueue *queue, const struct object *object);

/* Return: an object that waits no more, with the queue's reference; NULL if there is none. */
struct object *copyqueue_remove_any(struct copyqueue *queue);

/* Have a lane take the object that is next of those that it may take. Return: the object, with the
 * queue's reference; NULL if there is none. */
struct object *copyqueue_take(struct copyqueue *queue, unsigned lane);

/* The lane has finished its object. Return: whether another lane that has nothing to do may have
 * something to take now, beside what this one takes next. */
bool copyqueue_leave(struct copyqueue *queue, unsigned lane);

/* Return: whether the object waits, and no lane has taken it. */
bool copyqueue_waits(const struct copyqueue *queue, const struct object *object);

/* Find out how many bytes are to be copied before each object that waits, for a snapshot that has
 * not waited for any yet. */
void copyqueue_measure(struct copyqueue *queue);

/* Return: why a snapshot is not to wait for the object, a constant; NULL if it may. See
 *         copier_why_not_near(). */
const char *copyqueue_why_not_near(const struct copyqueue *queue, const struct object *object);

/* Note that a file could not be read on that this one asked for. */
void copyqueue_note_hung(struct copyqueue *queue, uint64_t asker);

/* Return: whether all lanes stand still that are before the object, which is not copied for
 *         root. */
bool copyqueue_is_stalled(const struct copyqueue *queue, const struct object *object);

/* A snapshot has waited for the object for so long. */
void copyqueue_note_wait(struct copyqueue *queue, const struct object *object, uint64_t ns);

/* Return: whether the present snapshot has waited long enough for files that the same user asked
 *         for, who is neither root nor the user that ptd runs as; or, if it is not known who asked
 *         for the object, and a user may serve its file, for all such files. */
bool copyqueue_is_overdue(const struct copyqueue *queue, const struct object *object);

/* A snapshot has given up the object: if something stands still that the same one asked for, note
 * that. */
void copyqueue_give_up(struct copyqueue *queue, const struct object *object);

/* The object, which waits, is asked for by @asker from now on, in whose turn it is the last one. */
void copyqueue_pass_to(struct copyqueue *queue, struct object *object, uint64_t asker);

/* Return: whether the object, which waits, is to be copied for @asker from now on. */
bool copyqueue_passes_to(const struct copyqueue *queue, const struct object *object,
			 uint64_t asker);
