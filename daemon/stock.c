/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/stock.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/objects/objectstore.h"
#include "daemon/share/share.h"
#include "util/map.h"

/* How often to measure snapshots again if one was removed meanwhile. */
#define TRIES 3u

static bool is_needed(const char *name, void *userdata)
{
	return objectstore_names_has(userdata, name);
}

static int mark_latest(struct stock *s)
{
	_cleanup_(map_deinit) struct map users = {};
	int r = 0;

	s->gone = calloc(s->n + 1, sizeof(*s->gone));
	s->latest = calloc(s->n + 1, sizeof(*s->latest));
	if (!s->gone || !s->latest)
		return -ENOMEM;
	for (size_t i = s->n; r == 0 && i-- > 0;) {
		const uid_t uid = s->entries[i].uid;
		const uint64_t key = map_hash(&uid, sizeof(uid));

		s->latest[i] = !map_get(&users, key);
		r = map_put(&users, key, 1);
	}
	return r;
}

int stock_take(struct spool *spool, struct objectstore *store, struct stock *ret_stock)
{
	_cleanup_(map_deinit) struct map names = {};
	_cleanup_(stock_deinit) struct stock s = {};
	int r = -ENOENT;

	for (unsigned i = 0; r == -ENOENT && i < TRIES; i++) {
		stock_deinit(&s);
		map_deinit(&names);
		r = objectstore_names(store, &names);
		if (r == 0)
			r = spool_list(spool, &s.entries, &s.n);
		if (r == 0)
			r = spool_measure(spool, s.entries, s.n, is_needed, &names, &s.use);
	}
	if (r == 0)
		r = mark_latest(&s);
	if (r < 0)
		return r;
	*ret_stock = s;
	s = (struct stock){};
	return 0;
}

void stock_deinit(struct stock *stock)
{
	free(stock->entries);
	free(stock->gone);
	free(stock->latest);
	(void)diskuse_free(stock->use);
	*stock = (struct stock){};
}

int stock_add_newest(struct stock *stock, int dir_fd, uid_t uid)
{
	struct spool_entry *entries = realloc(stock->entries, (stock->n + 1) * sizeof(*entries));
	int r;

	if (!entries)
		return -ENOMEM;
	stock->entries = entries;
	entries[stock->n++] = (struct spool_entry){ .uid = uid };
	r = diskuse_add_snapshot(stock->use, dir_fd, uid);
	if (r < 0)
		return r;
	free(stock->gone);
	free(stock->latest);
	stock->gone = stock->latest = NULL;
	return mark_latest(stock);
}

/* Choose the snapshot that goes next for one of a user, who is not root. */
static size_t choose_for_user(const struct stock *stock, const struct stock_limit *limit,
			      const struct share *share, bool *ret_has_more)
{
	const bool exceeds = limit->only_own || share_exceeds(share, limit->max, limit->uid);
	size_t own = stock->n, of_root = stock->n, of_most = stock->n;
	uint64_t most = 0;

	for (size_t i = 0; i + 1 < stock->n; i++) {
		const uid_t uid = stock->entries[i].uid;
		const uint64_t taken = share_taken(share, uid);

		if (stock->gone[i] || stock->entries[i].kept)
			continue;
		if (uid == limit->uid) {
			own = own < stock->n ? own : i;
			continue;
		}
		if (exceeds || stock->latest[i] || !share_exceeds(share, limit->max, uid))
			continue;
		if (uid == 0) {
			of_root = of_root < stock->n ? of_root : i;
		} else if (taken > most) {
			most = taken;
			of_most = i;
		}
	}
	*ret_has_more = (exceeds ? own : of_most) < stock->n && !limit->only_own;
	return of_most < stock->n ? of_most : of_root < stock->n ? of_root : own;
}

size_t stock_choose(const struct stock *stock, const struct stock_limit *limit, bool *ret_has_more)
{
	size_t oldest = stock->n, of_root = stock->n, of_most = stock->n;
	struct share share;
	uint64_t most = 0;

	diskuse_share(stock->use, &share);
	if (limit->needed > 0)
		share_take(&share, limit->uid, limit->needed);
	share.root_has_part = limit->uid != 0;
	if (limit->uid != 0)
		return choose_for_user(stock, limit, &share, ret_has_more);
	for (size_t i = 0; i + 1 < stock->n; i++) {
		const uid_t uid = stock->entries[i].uid;
		const uint64_t taken = share_taken(&share, uid);

		if (stock->gone[i] || stock->entries[i].kept)
			continue;
		oldest = oldest < stock->n ? oldest : i;
		if (uid == 0 && of_root == stock->n)
			of_root = i;
		if (taken > most && share_exceeds(&share, limit->max, uid)) {
			most = taken;
			of_most = i;
		}
	}
	*ret_has_more = of_most < stock->n;
	if (*ret_has_more)
		return of_most;
	if (limit->needed == 0 && stock->n > 0 &&
	    share_exceeds(&share, limit->max, stock->entries[stock->n - 1].uid))
		return stock->n;
	return of_root < stock->n ? of_root : oldest;
}

void stock_pass_over(struct stock *stock, size_t i)
{
	stock->gone[i] = true;
}

struct diskuse_amount stock_remove(struct stock *stock, size_t i)
{
	stock->gone[i] = true;
	return diskuse_remove(stock->use, i);
}

bool stock_has_of_others(const struct stock *stock, uid_t uid)
{
	for (size_t i = 0; i < stock->n; i++)
		if (!stock->gone[i] && stock->entries[i].uid != uid)
			return true;
	return false;
}
