/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/retention.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/objects/objectstore.h"
#include "daemon/proc/journal.h"
#include "ptd/control.h"
#include "util/map.h"
#include "util/snapid.h"

#define NS_PER_S UINT64_C(1000000000)

/* How often to measure snapshots again if one was removed meanwhile. */
#define TRIES 3u

static uint64_t limit_bytes(const struct config_limit *limit, uint64_t capacity)
{
	return limit->percent > 0 ? capacity / 100 * limit->percent : limit->bytes;
}

/* Return: the share of the inodes that equals the share of @bytes, because a file system may run
 * out of either. */
static uint64_t share_of_inodes(uint64_t bytes, const struct diskuse_amount *capacity)
{
	if (bytes >= capacity->bytes)
		return capacity->inodes;
	return (uint64_t)((double)bytes / (double)capacity->bytes * (double)capacity->inodes);
}

int retention_set_limits(struct retention *retention, const struct config *config)
{
	struct diskuse_amount capacity;
	uint64_t keep_free;
	int r;

	r = spool_capacity(retention->spool, &capacity);
	if (r < 0)
		return r;
	keep_free = limit_bytes(&config->keep_free, capacity.bytes);
	retention->max_age_ns = config->max_age_ns;
	retention->limits = (struct spool_limits){
		.max_use = limit_bytes(&config->max_use, capacity.bytes),
		.keep_free = keep_free,
		.keep_free_inodes = share_of_inodes(keep_free, &capacity),
	};
	return 0;
}

/* --- what there is --------------------------------------------------------------------------- */

/* The snapshots, and how much removing each would free. */
struct stock {
	struct spool_entry *entries;
	size_t n; /* oldest first; the newest one is removed only because of its age */
	bool *gone;
	struct diskuse *use;
};

static void stock_deinit(struct stock *stock)
{
	free(stock->entries);
	free(stock->gone);
	(void)diskuse_free(stock->use);
	*stock = (struct stock){};
}

static bool is_needed(const char *name, void *userdata)
{
	return objectstore_names_has(userdata, name);
}

static int take_stock(const struct retention *retention, struct stock *ret_stock)
{
	_cleanup_(map_deinit) struct map names = {};
	_cleanup_(stock_deinit) struct stock s = {};
	int r = -ENOENT;

	for (unsigned i = 0; r == -ENOENT && i < TRIES; i++) {
		stock_deinit(&s);
		map_deinit(&names);
		r = objectstore_names(retention->store, &names);
		if (r == 0)
			r = spool_list(retention->spool, &s.entries, &s.n);
		if (r == 0)
			r = spool_measure(retention->spool, s.entries, s.n, is_needed, &names,
					  &s.use);
	}
	if (r == 0) {
		s.gone = calloc(s.n + 1, sizeof(*s.gone));
		r = s.gone ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	*ret_stock = s;
	s = (struct stock){};
	return 0;
}

static struct diskuse_amount sum_amounts(struct diskuse_amount a, struct diskuse_amount b)
{
	/* UINT64_MAX means that inodes are not counted. */
	return (struct diskuse_amount){
		.bytes = a.bytes + b.bytes,
		.inodes = a.inodes == UINT64_MAX ? a.inodes : a.inodes + b.inodes,
	};
}

static uint64_t subtract(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}

static bool amount_suffices(const struct diskuse_amount *free, const struct diskuse_amount *needed)
{
	return free->bytes >= needed->bytes && free->inodes >= needed->inodes;
}

void evidence_get_share(struct evidence *evidence, struct share *ret_share)
{
	(void)pthread_mutex_lock(&evidence->lock);
	*ret_share = evidence->share;
	(void)pthread_mutex_unlock(&evidence->lock);
}

static void count_given(const struct retention *retention, uid_t uid)
{
	struct evidence *evidence = retention->evidence;

	(void)pthread_mutex_lock(&evidence->lock);
	share_count_taken_back(&evidence->share, uid);
	(void)pthread_mutex_unlock(&evidence->lock);
}

/* What the users share. */
struct limit {
	uint64_t max; /* bytes of snapshots and copies that there is room for */
	/* Whose snapshot is to be written, and how much room it needs; 0: none is. */
	uid_t uid;
	uint64_t needed;
};

/*
 * Choose the snapshot that goes next.
 *
 * @ret_has_more: its user has more than his share
 *
 * Return: its number; the number of snapshots if none may go.
 */
static size_t choose(const struct stock *stock, const struct limit *limit, bool *ret_has_more)
{
	size_t oldest = stock->n, of_root = stock->n, of_most = stock->n;
	struct share share;
	uint64_t most = 0, max;

	/* What is nobody's is no room for anybody. */
	diskuse_share(stock->use, &share);
	max = subtract(limit->max, subtract(diskuse_taken(stock->use).bytes, share.taken));
	if (limit->needed > 0)
		share_take(&share, limit->uid, limit->needed);
	for (size_t i = 0; i + 1 < stock->n; i++) {
		const uid_t uid = stock->entries[i].uid;
		const uint64_t taken = share_taken(&share, uid);

		if (stock->gone[i] || stock->entries[i].kept)
			continue;
		oldest = oldest < stock->n ? oldest : i;
		if (uid == 0 && of_root == stock->n)
			of_root = i;
		if (taken > most && share_exceeds(&share, max, uid)) {
			most = taken;
			of_most = i;
		}
	}
	*ret_has_more = of_most < stock->n;
	if (*ret_has_more)
		return of_most;
	if (limit->needed > 0 && share_exceeds(&share, max, limit->uid))
		return stock->n;
	if (stock->n > 0 && share_exceeds(&share, max, stock->entries[stock->n - 1].uid))
		return stock->n;
	return of_root < stock->n ? of_root : oldest;
}

static void say_removed(const struct spool_entry *entry, const struct diskuse_amount *freed,
			const char *why)
{
	journal_log_one(LOG_NOTICE, PTD_MESSAGE_REMOVED, "PTD_SNAPSHOT", entry->id,
			"removed snapshot %s, %.1f MiB: %s", entry->id,
			(double)freed->bytes / (1 << 20), why);
}

/* Remove the snapshot @i. Return: whether it is gone; or negative errno. */
static int remove_one(const struct retention *retention, struct stock *stock, size_t i,
		      const char *why, struct diskuse_amount *ret_freed)
{
	const struct spool_entry *entry = &stock->entries[i];
	int r;

	stock->gone[i] = true;
	if (entry->kept)
		return false;
	r = spool_remove(retention->spool, entry->id);
	/* A user asked to keep the snapshot meanwhile, or removed it. */
	if (r == -EPERM || r == -ENOENT)
		return false;
	if (r < 0)
		return r;
	*ret_freed = diskuse_remove(stock->use, i);
	(*retention->n_removed)++;
	say_removed(entry, ret_freed, why);
	return true;
}

/* Remove the snapshot that goes next. Return: as remove_one(), or -ENOENT if none may go. */
static int remove_next(const struct retention *retention, struct stock *stock,
		       const struct limit *limit, const char *why, struct diskuse_amount *ret_freed)
{
	char text[128];
	bool has_more;
	const size_t i = choose(stock, limit, &has_more);
	int r;

	if (i == stock->n)
		return -ENOENT;
	if (has_more)
		(void)snprintf(text, sizeof(text), "%s, and user %u has more than his share", why,
			       (unsigned)stock->entries[i].uid);
	r = remove_one(retention, stock, i, has_more ? text : why, ret_freed);
	if (r > 0 && has_more)
		count_given(retention, stock->entries[i].uid);
	return r;
}

/* --- before a snapshot is written ------------------------------------------------------------ */

/* Get how much would become free if all snapshots that may be removed were removed. Return: 0; or
 * -EDQUOT, and @ret_freed, if it is the share of the user that keeps others from being removed; or
 * another negative errno. */
static int foresee(const struct retention *retention, struct limit *limit,
		   const struct diskuse_amount *available, struct diskuse_amount *ret_freed)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	struct diskuse_amount freed = {};
	size_t i, n_left = 0;
	bool has_more;
	int r;

	r = take_stock(retention, &stock);
	if (r < 0)
		return r;
	limit->max = available->bytes + diskuse_taken(stock.use).bytes;
	if (limit->max > retention->limits.max_use)
		limit->max = retention->limits.max_use;
	while ((i = choose(&stock, limit, &has_more)) < stock.n) {
		stock.gone[i] = true;
		freed = sum_amounts(freed, diskuse_remove(stock.use, i));
	}
	for (i = 0; i + 1 < stock.n; i++)
		n_left += !stock.gone[i] && !stock.entries[i].kept;
	*ret_freed = freed;
	return n_left > 0 ? -EDQUOT : 0;
}

/* Remove snapshots until @needed is free. What remove_one() returns is free only when the store has
 * been swept. */
static int remove_for(const struct retention *retention, const struct diskuse_amount *needed,
		      const struct limit *limit)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	struct diskuse_amount available, freed;
	int r;

	r = take_stock(retention, &stock);
	while (r >= 0) {
		r = spool_free_room(retention->spool, &available);
		if (r < 0 || amount_suffices(&available, needed))
			return r;
		r = remove_next(retention, &stock, limit, "there was no room for the next one",
				&freed);
		if (r > 0)
			r = objectstore_sweep(retention->store);
	}
	return r == -ENOENT ? 0 : r;
}

int retention_make_room(const struct retention *retention, const struct diskuse_amount *needed,
			uid_t uid, retention_evict_fn evict, void *userdata)
{
	struct limit limit = { .uid = uid, .needed = needed->bytes };
	struct diskuse_amount available, freed = {}, all;
	uint64_t missing;
	int r, foreseen;

	r = objectstore_sweep(retention->store);
	if (r == 0)
		r = spool_free_room(retention->spool, &available);
	if (r < 0 || amount_suffices(&available, needed))
		return r;
	foreseen = foresee(retention, &limit, &available, &freed);
	if (foreseen < 0 && foreseen != -EDQUOT)
		return foreseen;
	all = sum_amounts(available, freed);
	missing = subtract(needed->bytes, available.bytes);
	if (missing > 0)
		all.bytes += evict(missing, subtract(missing, freed.bytes), userdata);
	if (amount_suffices(&all, needed))
		return remove_for(retention, needed, &limit);
	if (foreseen == -EDQUOT)
		count_given(retention, uid);
	return foreseen == -EDQUOT ? foreseen : -ENOSPC;
}

int retention_has_room(const struct retention *retention, const struct diskuse_amount *needed)
{
	const struct diskuse_amount all = {
		.bytes = needed->bytes + retention->limits.keep_free,
		.inodes = needed->inodes + retention->limits.keep_free_inodes,
	};
	struct diskuse_amount available;
	int r;

	r = spool_free_room(retention->spool, &available);
	return r < 0 ? r : amount_suffices(&available, &all);
}

/* --- the limits ------------------------------------------------------------------------------ */

/* Get by how much the limits are exceeded. */
static int find_excess(const struct retention *retention, const struct diskuse *use,
		       struct diskuse_amount *ret_excess)
{
	const struct spool_limits *limits = &retention->limits;
	const uint64_t taken = diskuse_taken(use).bytes;
	struct diskuse_amount available, excess = {};
	int r;

	r = spool_free_room(retention->spool, &available);
	if (r < 0)
		return r;
	if (taken > limits->max_use)
		excess.bytes = taken - limits->max_use;
	if (available.bytes < limits->keep_free &&
	    limits->keep_free - available.bytes > excess.bytes)
		excess.bytes = limits->keep_free - available.bytes;
	if (available.inodes < limits->keep_free_inodes)
		excess.inodes = limits->keep_free_inodes - available.inodes;
	*ret_excess = excess;
	return 0;
}

/* Measure the snapshots, and by how much the limits are exceeded. */
static int measure_excess(const struct retention *retention, struct stock *stock,
			  struct diskuse_amount *ret_excess)
{
	int r;

	stock_deinit(stock);
	r = take_stock(retention, stock);
	return r < 0 ? r : find_excess(retention, stock->use, ret_excess);
}

/* An id that does not say when its snapshot was taken is of no age. */
static bool is_expired(const struct retention *retention, const struct spool_entry *entry)
{
	const int64_t taken = snapid_time(entry->id);
	const int64_t now = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S);

	return retention->max_age_ns > 0 && taken >= 0 && now > taken &&
	       (uint64_t)(now - taken) > retention->max_age_ns / NS_PER_S;
}

int retention_has_expired(const struct retention *retention)
{
	_cleanup_(freep) struct spool_entry *entries = NULL;
	size_t n;
	int r;

	if (retention->max_age_ns == 0)
		return false;
	r = spool_list(retention->spool, &entries, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!entries[i].kept && is_expired(retention, &entries[i]))
			return true;
	return false;
}

static int remove_expired(const struct retention *retention)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	struct diskuse_amount freed;
	bool removed = false;
	int r;

	r = retention_has_expired(retention);
	if (r > 0)
		r = take_stock(retention, &stock);
	for (size_t i = 0; r >= 0 && i < stock.n; i++) {
		if (!is_expired(retention, &stock.entries[i]))
			continue;
		r = remove_one(retention, &stock, i, "it is older than MaxAge=", &freed);
		removed = removed || r > 0;
	}
	if (r >= 0 && removed)
		r = objectstore_sweep(retention->store);
	return r < 0 ? r : 0;
}

int retention_enforce(const struct retention *retention, retention_evict_fn evict, void *userdata)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	struct diskuse_amount excess = {}, freed;
	struct limit limit = {};
	bool removed = false;
	int r, swept;

	r = objectstore_sweep(retention->store);
	if (r == 0)
		r = remove_expired(retention);
	if (r == 0)
		r = measure_excess(retention, &stock, &excess);
	if (r == 0 && excess.bytes > 0 && evict(excess.bytes, 0, userdata) > 0)
		r = measure_excess(retention, &stock, &excess);
	if (r == 0)
		limit.max = subtract(diskuse_taken(stock.use).bytes, excess.bytes);
	while (r >= 0 && (excess.bytes > 0 || excess.inodes > 0)) {
		r = remove_next(retention, &stock, &limit, "MaxUse= or KeepFree= was reached",
				&freed);
		if (r <= 0)
			continue;
		removed = true;
		excess.bytes = subtract(excess.bytes, freed.bytes);
		excess.inodes = subtract(excess.inodes, freed.inodes);
	}
	r = r == -ENOENT ? 0 : r;
	swept = removed ? objectstore_sweep(retention->store) : 0;
	return r < 0 ? r : swept;
}
