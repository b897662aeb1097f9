/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/retention/retention.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/objects/objectstore.h"
#include "daemon/proc/journal.h"
#include "daemon/share/share.h"
#include "ptd/control.h"
#include "util/map.h"
#include "util/snapid.h"
#include "util/subtract.h"

#define NS_PER_S UINT64_C(1000000000)

/* How often to measure snapshots again if one was removed meanwhile. */
#define TRIES 3u

static uint64_t limit_bytes(const struct config_limit *limit, uint64_t capacity)
{
	const uint64_t share = capacity / 100 * limit->percent;

	return limit->percent > 0 && (limit->bytes == 0 || share < limit->bytes) ? share
										 : limit->bytes;
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

/* The snapshots that there are, and how much removing each would free. */
struct stock {
	struct spool_entry *entries;
	size_t n; /* oldest first */
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

/* Measure all snapshots. Return: 0, or negative errno. */
static int stock_take(const struct retention *retention, struct stock *ret_stock)
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
	if (r < 0)
		return r;
	s.gone = calloc(s.n + 1, sizeof(*s.gone));
	if (!s.gone)
		return -ENOMEM;
	*ret_stock = s;
	s = (struct stock){};
	return 0;
}

/* Return: the number of the snapshot that goes next, the oldest one that may go; the number of
 *         snapshots if none may. */
static size_t stock_oldest(const struct stock *stock)
{
	for (size_t i = 0; i + 1 < stock->n; i++)
		if (!stock->gone[i] && !stock->entries[i].kept)
			return i;
	return stock->n;
}

/* The snapshot @i is gone. Return: how much became free. */
static struct diskuse_amount stock_remove(struct stock *stock, size_t i)
{
	stock->gone[i] = true;
	return diskuse_remove(stock->use, i);
}

static struct diskuse_amount sum_amounts(struct diskuse_amount a, struct diskuse_amount b)
{
	/* UINT64_MAX means that inodes are not counted. */
	return (struct diskuse_amount){
		.bytes = a.bytes + b.bytes,
		.inodes = a.inodes == UINT64_MAX ? a.inodes : a.inodes + b.inodes,
	};
}

static bool amount_suffices(const struct diskuse_amount *free, const struct diskuse_amount *needed)
{
	return free->bytes >= needed->bytes && free->inodes >= needed->inodes;
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
	*ret_freed = stock_remove(stock, i);
	(*retention->n_removed)++;
	say_removed(entry, ret_freed, why);
	return true;
}

/* Remove the snapshot that goes next. Return: as remove_one(), or -ENOENT if none may go. */
static int remove_next(const struct retention *retention, struct stock *stock, const char *why,
		       struct diskuse_amount *ret_freed)
{
	const size_t i = stock_oldest(stock);

	return i == stock->n ? -ENOENT : remove_one(retention, stock, i, why, ret_freed);
}

/* --- before a snapshot is written ------------------------------------------------------------ */

/* Return: the bytes that snapshots may take. */
static uint64_t snapshots_max(const struct retention *retention)
{
	const uint64_t max = retention->limits.max_use;

	return max - max / RETENTION_COPIES_PART;
}

/* Get how much would become free if all snapshots that may be removed were removed. Return: 0, or
 * negative errno. */
static int foresee(const struct retention *retention, struct diskuse_amount *ret_freed)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	struct diskuse_amount freed = {};
	size_t i;
	int r;

	r = stock_take(retention, &stock);
	if (r < 0)
		return r;
	while ((i = stock_oldest(&stock)) < stock.n)
		freed = sum_amounts(freed, stock_remove(&stock, i));
	*ret_freed = freed;
	return 0;
}

/* Remove snapshots until @needed is free. What remove_one() returns is free only when the store has
 * been swept. */
static int remove_for(const struct retention *retention, const struct diskuse_amount *needed)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	struct diskuse_amount available, freed;
	int r;

	r = stock_take(retention, &stock);
	while (r >= 0) {
		r = spool_free_room(retention->spool, &available);
		if (r < 0 || amount_suffices(&available, needed))
			break;
		r = remove_next(retention, &stock, "there was no room for the next one", &freed);
		if (r > 0)
			r = objectstore_sweep(retention->store);
	}
	if (stock.use)
		*retention->taken = diskuse_in_snapshots(stock.use);
	return r == -ENOENT ? 0 : r;
}

int retention_get_max(const struct retention *retention, uint64_t *ret_max)
{
	struct diskuse_amount available;
	struct share copies;
	uint64_t room;
	int r;

	r = spool_free_room(retention->spool, &available);
	if (r < 0)
		return r;
	objectstore_get_share(retention->store, &copies);
	/* The copies to which no snapshot links are there already, and go if there is no room. */
	room = available.bytes + copies.taken + *retention->taken;
	*ret_max = snapshots_max(retention) < room ? snapshots_max(retention) : room;
	return 0;
}

int retention_make_room(const struct retention *retention, const struct diskuse_amount *needed,
			retention_evict_fn evict, void *userdata)
{
	struct diskuse_amount available, freed = {}, all;
	uint64_t missing;
	int r;

	r = objectstore_sweep(retention->store);
	if (r == 0)
		r = spool_free_room(retention->spool, &available);
	if (r < 0 || amount_suffices(&available, needed))
		return r;
	r = foresee(retention, &freed);
	if (r < 0)
		return r;
	all = sum_amounts(available, freed);
	missing = subtract(needed->bytes, available.bytes);
	if (missing > 0)
		all.bytes += evict(missing, subtract(missing, freed.bytes), userdata);
	return amount_suffices(&all, needed) ? remove_for(retention, needed) : -ENOSPC;
}

/* --- the limits ------------------------------------------------------------------------------ */

/* Get how much is less free than is to be, but no more than the newest snapshot has taken. */
static int find_lack(const struct retention *retention, const struct stock *stock,
		     struct diskuse_amount *ret_lack)
{
	const struct spool_limits *limits = &retention->limits;
	struct diskuse_amount available, newest = {}, lack;
	int r;

	r = spool_free_room(retention->spool, &available);
	if (r < 0)
		return r;
	if (stock->n > 0)
		newest = diskuse_own(stock->use, stock->n - 1);
	lack = (struct diskuse_amount){
		.bytes = subtract(limits->keep_free, available.bytes),
		.inodes = subtract(limits->keep_free_inodes, available.inodes),
	};
	*ret_lack = (struct diskuse_amount){
		.bytes = lack.bytes < newest.bytes ? lack.bytes : newest.bytes,
		.inodes = lack.inodes < newest.inodes ? lack.inodes : newest.inodes,
	};
	return 0;
}

/* Measure the snapshots, and how much is less free than is to be, which is no matter unless one was
 * just written. */
static int measure(const struct retention *retention, bool was_written, struct stock *stock,
		   struct diskuse_amount *ret_lack)
{
	int r;

	stock_deinit(stock);
	*ret_lack = (struct diskuse_amount){};
	r = stock_take(retention, stock);
	return r == 0 && was_written ? find_lack(retention, stock, ret_lack) : r;
}

/* Say to the object store how much room snapshots leave for copies. */
static void set_room(const struct retention *retention, const struct stock *stock)
{
	const uint64_t max = retention->limits.max_use, least = max / RETENTION_COPIES_PART;
	const uint64_t left = subtract(max, diskuse_in_snapshots(stock->use));

	*retention->taken = diskuse_in_snapshots(stock->use);
	objectstore_set_room(retention->store, left > least ? left : least);
}

int retention_set_room(const struct retention *retention)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	int r;

	r = stock_take(retention, &stock);
	if (r == 0)
		set_room(retention, &stock);
	return r;
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
		r = stock_take(retention, &stock);
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

int retention_expire(const struct retention *retention)
{
	int r;

	r = remove_expired(retention);
	return r < 0 ? r : retention_set_room(retention);
}

/* Evict copies of programs that have ended. Return: whether something became free. */
static bool evict_first(const struct retention *retention, const struct stock *stock,
			const struct diskuse_amount *lack, retention_evict_fn evict, void *userdata)
{
	const uint64_t taken = diskuse_taken(stock->use).bytes;
	const uint64_t excess = subtract(taken, retention->limits.max_use);
	const uint64_t bytes = excess > lack->bytes ? excess : lack->bytes;

	return bytes > 0 && evict(bytes, 0, userdata) > 0;
}

/* Remove snapshots until the limits hold, or none may go. */
static int remove_excess(const struct retention *retention, struct stock *stock,
			 struct diskuse_amount lack)
{
	const uint64_t max = snapshots_max(retention);
	struct diskuse_amount freed;
	bool removed = false;
	int r = 0, swept;

	while (r >= 0 &&
	       (diskuse_in_snapshots(stock->use) > max || lack.bytes > 0 || lack.inodes > 0)) {
		r = remove_next(retention, stock, "MaxUse= or KeepFree= was reached", &freed);
		if (r <= 0)
			continue;
		removed = true;
		lack.bytes = subtract(lack.bytes, freed.bytes);
		lack.inodes = subtract(lack.inodes, freed.inodes);
	}
	r = r == -ENOENT ? 0 : r;
	swept = removed ? objectstore_sweep(retention->store) : 0;
	return r < 0 ? r : swept;
}

int retention_enforce(const struct retention *retention, bool was_written, retention_evict_fn evict,
		      void *userdata)
{
	_cleanup_(stock_deinit) struct stock stock = {};
	struct diskuse_amount lack;
	int r;

	r = objectstore_sweep(retention->store);
	if (r == 0)
		r = remove_expired(retention);
	if (r == 0)
		r = measure(retention, was_written, &stock, &lack);
	if (r == 0 && evict_first(retention, &stock, &lack, evict, userdata))
		r = measure(retention, was_written, &stock, &lack);
	if (r == 0)
		r = remove_excess(retention, &stock, lack);
	if (r == 0)
		set_room(retention, &stock);
	return r;
}
