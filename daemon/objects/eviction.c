/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/eviction.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/objects/copier.h"
#include "daemon/objects/object.h"
#include "daemon/objects/objectstore.h"
#include "daemon/share/share.h"

/* How much an object is needed. */
struct rank {
	enum {
		RANK_FAILED,     /* there is no copy of it */
		RANK_NAMED_MANY, /* its owner has more than their part of the objects */
		RANK_NAMED,
		RANK_MAPPED_MANY, /* likewise */
		RANK_MAPPED,
	} use;
	uint64_t seen;
	struct object *object;
};

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->use != y->use)
		return x->use < y->use ? -1 : 1;
	return (x->seen > y->seen) - (x->seen < y->seen);
}

/* Count the objects by the owners of the files. */
static void count_objects(const struct eviction *e, struct share *ret_share)
{
	*ret_share = (struct share){};
	for (size_t i = 0; i < e->n_objects; i++)
		share_take(ret_share, e->objects[i]->original.uid, 1);
}

static struct rank rank_object(const struct eviction *e, const struct share *counts,
			       struct object *object)
{
	const bool many = share_exceeds(counts, OBJECTSTORE_SOFT_MAX, object->original.uid);

	return (struct rank){
		.use = copier_result(e->copier, object) < 0 ? RANK_FAILED
		       : object->seen > e->moment ? (many ? RANK_MAPPED_MANY : RANK_MAPPED)
		       : many                     ? RANK_NAMED_MANY
						  : RANK_NAMED,
		.seen = object->seen,
		.object = object,
	};
}

/* Rank the objects to which only the store refers, those that are needed least first. Return: 0,
 * and @ret_ranks, which the caller frees; or -ENOMEM. */
static int rank_objects(const struct eviction *e, struct rank **ret_ranks, size_t *ret_n)
{
	struct rank *ranks = calloc(e->n_objects + 1, sizeof(*ranks));
	struct share counts;
	size_t n = 0;

	if (!ranks)
		return -ENOMEM;
	count_objects(e, &counts);
	for (size_t i = 0; i < e->n_objects; i++)
		if (e->objects[i]->n_refs == 1)
			ranks[n++] = rank_object(e, &counts, e->objects[i]);
	qsort(ranks, n, sizeof(*ranks), by_rank);
	*ret_ranks = ranks;
	*ret_n = n;
	return 0;
}

int eviction_choose(const struct eviction *eviction)
{
	_cleanup_(freep) struct rank *ranks = NULL;
	size_t n_left = eviction->n_objects, n_ranks;

	if (rank_objects(eviction, &ranks, &n_ranks) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n_ranks; i++) {
		if (n_left <= (ranks[i].use < RANK_MAPPED_MANY ? OBJECTSTORE_SOFT_MAX / 2
							       : OBJECTSTORE_MAX / 8 * 7))
			break;
		ranks[i].object->goes = true;
		n_left--;
	}
	return 0;
}

int eviction_choose_alone(const struct eviction *eviction, uint64_t bytes, uint64_t least,
			  uint64_t *ret_bytes)
{
	_cleanup_(freep) struct rank *ranks = NULL;
	uint64_t chosen = 0;
	size_t n_ranks;

	if (rank_objects(eviction, &ranks, &n_ranks) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n_ranks && chosen < bytes; i++) {
		const bool is_idle = ranks[i].use == RANK_NAMED || ranks[i].use == RANK_NAMED_MANY;
		const uint64_t alone =
		    is_idle ? copier_alone(eviction->copier, ranks[i].object) : 0;

		ranks[i].object->goes = alone > 0;
		chosen += alone;
	}
	if (chosen < least) {
		for (size_t i = 0; i < n_ranks; i++)
			ranks[i].object->goes = false;
		chosen = 0;
	}
	*ret_bytes = chosen;
	return 0;
}

/* Who is to give copies. */
struct giver {
	uid_t uid;
	bool only_idle; /* not those of files that programs have mapped */
};

/* Return: whether copies are to be taken back, and whose. Root gives if there are more copies than
 * there is room for, for then users have no more than their parts; and what no program has mapped,
 * if somebody has less than their part. */
static bool find_giver(const struct share *share, uint64_t max, struct giver *ret_giver)
{
	*ret_giver = (struct giver){};
	if (share_giver(share, max, &ret_giver->uid))
		return true;
	ret_giver->uid = 0;
	ret_giver->only_idle = share->taken <= max;
	return share->taken > max ||
	       (share->needed > 0 && share->needed <= max && share->taken > max - share->needed);
}

bool eviction_is_due(const struct share *share, uint64_t max)
{
	struct giver giver;

	return find_giver(share, max, &giver);
}

/* Return: whether the giver has a copy of the object, which is to be taken back. */
static bool gives(const struct giver *giver, const struct rank *rank)
{
	return rank->use != RANK_FAILED && rank->object->payer == giver->uid &&
	       (!giver->only_idle || rank->use < RANK_MAPPED_MANY);
}

int eviction_take_back(const struct eviction *eviction, uint64_t *ret_freed, uid_t *ret_uid)
{
	_cleanup_(freep) struct rank *ranks = NULL;
	uint64_t freed = 0, max, alone;
	struct giver giver;
	struct share share;
	size_t n_ranks;

	if (rank_objects(eviction, &ranks, &n_ranks) < 0)
		return -ENOMEM;
	copier_get_share(eviction->copier, &share, &max);
	for (size_t i = 0; i < n_ranks && find_giver(&share, max, &giver); i++) {
		struct object *o = ranks[i].object;

		alone = gives(&giver, &ranks[i]) ? copier_alone(eviction->copier, o) : 0;
		if (alone == 0)
			continue;
		copier_take_back(eviction->copier, o);
		share_give(&share, giver.uid, alone);
		freed += alone;
		*ret_uid = giver.uid;
	}
	*ret_freed = freed;
	return 0;
}
