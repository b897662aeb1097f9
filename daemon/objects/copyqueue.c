/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/copyqueue.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/objects/asker.h"
#include "daemon/objects/copier.h"
#include "daemon/objects/object.h"
#include "util/map.h"

/* Least number of bytes that a file counts, because copying even a small file takes a moment. */
#define COST_MIN (UINT64_C(256) << 10)

/* A snapshot does not wait for a file whose reading has stood still for this time. */
#define STALL_NS UINT64_C(800000000)

/* If reading a file took longer than its patience, or a snapshot has given it up, snapshots do not
 * wait for other files of the same asker for a while. */
#define HUNG_NS UINT64_C(30000000000)

/* Longest time that a snapshot waits for all files of one user, who decides how many there are, how
 * large, and how slowly a file server has them. Processes may also end so soon that it is not known
 * whose they were: for all files of such processes together that a user may serve, a snapshot waits
 * for another while. */
#define USER_NS    UINT64_C(300000000)
#define STRANGE_NS UINT64_C(100000000)

/* Lanes work at a time: for root or for those whose users are not known, half of them; for each
 * user, one. */
#define LANES_HALF (COPYQUEUE_LANES / 2)

void copylist_push(struct copylist *list, struct object *object)
{
	object->queued = NULL;
	if (list->last)
		list->last->queued = object;
	else
		list->first = object;
	list->last = object;
}

struct object *copylist_pop(struct copylist *list)
{
	struct object *object = list->first;

	if (!object)
		return NULL;
	list->first = object->queued;
	if (!list->first)
		list->last = NULL;
	return object;
}

static uint64_t copy_cost(const struct object *object)
{
	return object->original.size > COST_MIN ? object->original.size : COST_MIN;
}

static size_t asker_index(uint64_t asker)
{
	return map_hash(&asker, sizeof(asker)) % COPYQUEUE_ASKERS;
}

static struct copyqueue_turn *turn_of(struct copyqueue *q, const struct object *object)
{
	return &q->turns[asker_index(object->asker + object->original.uid)];
}

void copyqueue_add(struct copyqueue *q, struct object *object)
{
	copylist_push(&turn_of(q, object)->waiting, object);
	q->n_waiting++;
}

void copyqueue_note_hung(struct copyqueue *q, uint64_t asker)
{
	q->hung[asker_index(asker)] = clock_ns(CLOCK_MONOTONIC);
}

/* Return: whether a file was not read on lately that the same one asked for. */
static bool has_hung(const struct copyqueue *q, uint64_t asker)
{
	const uint64_t at = q->hung[asker_index(asker)];

	return asker != ASKER_ROOT && at > 0 && clock_ns(CLOCK_MONOTONIC) - at < HUNG_NS;
}

/* Return: whether it is not known who asks for the object, and a user may serve its file. What a
 * record says of the file system of a file that was not found, a user may have written. */
static bool is_strange(const struct copyqueue *q, const struct object *object)
{
	if (!asker_is_unknown(object->asker))
		return false;
	for (size_t i = 0; i < COPYQUEUE_DISKS && object->original.found; i++)
		if (object->original.dev == q->disks[i])
			return false;
	return true;
}

bool copyqueue_may_take(const struct copyqueue *q, const struct object *object)
{
	unsigned n_same = 0, n_unknown = 0, n_strange = 0;

	for (unsigned i = 0; i < COPYQUEUE_LANES; i++) {
		const struct object *taking = q->taken[i];

		n_same += taking && taking->asker == object->asker;
		n_unknown += taking && asker_is_unknown(taking->asker);
		n_strange += taking && is_strange(q, taking);
	}
	if (n_same >= (object->asker == ASKER_ROOT ? LANES_HALF : 1))
		return false;
	/* One lane is left for files that no user can keep it busy with. */
	if (is_strange(q, object) && n_strange >= LANES_HALF - 1)
		return false;
	return !asker_is_unknown(object->asker) || n_unknown < LANES_HALF;
}

/* Remove the object behind @before, which is NULL for the first one. */
static struct object *remove_next(struct copylist *list, struct object *before)
{
	struct object *object = before ? before->queued : list->first;

	if (!before)
		return copylist_pop(list);
	before->queued = object->queued;
	if (list->last == object)
		list->last = before;
	return object;
}

struct object *copyqueue_remove_any(struct copyqueue *q)
{
	struct object *object = NULL;

	for (size_t i = 0; i < COPYQUEUE_ASKERS && !object; i++)
		object = copylist_pop(&q->turns[i].waiting);
	return object;
}

/* Find the first that may be taken. Those that differ in nothing from one that may not be taken are
 * passed over. Return: it, or NULL. */
static struct object *first_to_take(const struct copyqueue *q, const struct copylist *list,
				    struct object **ret_before)
{
	const struct object *refused = NULL;
	struct object *before = NULL;

	for (struct object *o = list->first; o; before = o, o = o->queued) {
		if (refused && refused->asker == o->asker &&
		    is_strange(q, refused) == is_strange(q, o))
			continue;
		if (copyqueue_may_take(q, o)) {
			*ret_before = before;
			return o;
		}
		refused = o;
	}
	return NULL;
}

struct object *copyqueue_take(struct copyqueue *q, unsigned lane)
{
	/* Of the asker and owner with the fewest copied bytes, of those that may be taken. */
	struct copyqueue_turn *best = NULL;
	struct object *before = NULL, *object;

	for (size_t i = 0; i < COPYQUEUE_ASKERS; i++)
		if ((!best || q->turns[i].served < best->served) &&
		    first_to_take(q, &q->turns[i].waiting, &before))
			best = &q->turns[i];
	if (!best)
		return NULL;
	object = remove_next(&best->waiting, before);
	best->served += copy_cost(object);
	if (--q->n_waiting == 0)
		for (size_t i = 0; i < COPYQUEUE_ASKERS; i++)
			q->turns[i].served = 0;
	q->taken[lane] = object;
	return object;
}

bool copyqueue_leave(struct copyqueue *q, unsigned lane)
{
	/* A user's objects have one limit, so that a lane has one successor. Those of askers that
	 * are not known have three. */
	return asker_is_unknown(TAKE(q->taken[lane])->asker);
}

void copyqueue_measure(struct copyqueue *q)
{
	uint64_t ahead[COPYQUEUE_ASKERS] = {};

	memset(q->waited, 0, sizeof(q->waited));
	q->waited_strange = 0;
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++)
		if (q->taken[i])
			ahead[q->taken[i]->original.uid % COPYQUEUE_ASKERS] +=
			    copy_cost(q->taken[i]);
	for (size_t i = 0; i < COPYQUEUE_ASKERS; i++)
		for (struct object *o = q->turns[i].waiting.first; o; o = o->queued)
			o->ahead = ahead[o->original.uid % COPYQUEUE_ASKERS] += copy_cost(o);
}

const char *copyqueue_why_not_near(const struct copyqueue *q, const struct object *object)
{
	if (!object->done && has_hung(q, object->asker))
		return COPIER_WHY_STALLED;
	if (!object->done && object->original.uid != 0 && object->ahead > COPIER_NEAR_MAX)
		return "more than 768 MiB of its owner's files wait to be copied";
	return NULL;
}

/* Which lanes are before an object: the one that has it; those that work for the same asker; those
 * for which its kind has no other lane; or all. */
enum before { BEFORE_ITSELF, BEFORE_ASKER, BEFORE_UNKNOWN, BEFORE_ALL, _BEFORES };

static bool is_before(const struct object *taken, const struct object *object, enum before before)
{
	switch (before) {
	case BEFORE_ITSELF:
		return taken == object;
	case BEFORE_ASKER:
		return taken && taken->asker == object->asker;
	case BEFORE_UNKNOWN:
		return taken && asker_is_unknown(taken->asker) && asker_is_unknown(object->asker);
	default:
		return taken;
	}
}

bool copyqueue_is_stalled(const struct copyqueue *q, const struct object *object)
{
	static const unsigned least[] = { 1, 1, LANES_HALF, COPYQUEUE_LANES };

	/* Files of a private recorder's own user delay no other user. */
	if (object->asker == ASKER_ROOT || object->asker == geteuid())
		return false;
	for (enum before before = BEFORE_ITSELF; before < _BEFORES; before++) {
		unsigned n = 0, n_standing = 0;

		for (unsigned i = 0; i < COPYQUEUE_LANES; i++) {
			if (!is_before(q->taken[i], object, before))
				continue;
			n++;
			n_standing += copylane_stands(q->lanes[i], STALL_NS);
		}
		if (n >= least[before])
			return n_standing == n;
	}
	return false;
}

void copyqueue_note_wait(struct copyqueue *q, const struct object *object, uint64_t ns)
{
	if (is_strange(q, object))
		q->waited_strange += ns;
	else
		q->waited[asker_index(object->asker)] += ns;
}

bool copyqueue_is_overdue(const struct copyqueue *q, const struct object *object)
{
	if (asker_is_unknown(object->asker))
		return is_strange(q, object) && q->waited_strange >= STRANGE_NS;
	return object->asker != ASKER_ROOT && object->asker != geteuid() &&
	       q->waited[asker_index(object->asker)] >= USER_NS;
}

void copyqueue_give_up(struct copyqueue *q, const struct object *object)
{
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++)
		if (is_before(q->taken[i], object, BEFORE_ASKER) &&
		    copylane_stands(q->lanes[i], STALL_NS / 2))
			copyqueue_note_hung(q, object->asker);
}

bool copyqueue_waits(const struct copyqueue *q, const struct object *object)
{
	bool waits = !object->done;

	for (unsigned i = 0; i < COPYQUEUE_LANES; i++)
		waits = waits && q->taken[i] != object;
	return waits;
}

void copyqueue_pass_to(struct copyqueue *q, struct object *object, uint64_t asker)
{
	struct copylist *list = &turn_of(q, object)->waiting;
	struct object *before = NULL;

	for (struct object *o = list->first; o != object; o = o->queued)
		before = o;
	(void)remove_next(list, before);
	q->n_waiting--;
	object->asker = asker;
	copyqueue_add(q, object);
}

bool copyqueue_passes_to(const struct copyqueue *q, const struct object *object, uint64_t asker)
{
	if (asker == object->asker)
		return false;
	return asker == ASKER_ROOT || (!has_hung(q, asker) && (has_hung(q, object->asker) ||
							       copyqueue_is_stalled(q, object)));
}
