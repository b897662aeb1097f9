/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/poolclaims.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "daemon/proc/claimant.h"
#include "util/map.h"

#define ROOT 0

/* The number of a pool is the low byte of a claim. */
#define POOLS_MAX 256u

#define NO_POOL POOLS_MAX

/* What is remembered of a process or thread, by its number: the pool that was believed about it,
 * and the walk that looked it up last. */
static uint64_t make_claim(uint32_t pool, uint64_t serial)
{
	return serial << 8 | pool;
}

static uint32_t pool_of(uint64_t claim)
{
	return claim & (POOLS_MAX - 1);
}

static uint64_t serial_of(uint64_t claim)
{
	return claim >> 8;
}

struct poolclaims {
	pthread_mutex_t lock;
	struct map by_number; /* → claim */
	size_t n[POOLS_MAX];  /* claims of each pool */
	uint64_t last_serial;
};

int poolclaims_new(struct poolclaims **ret_claims)
{
	struct poolclaims *claims = calloc(1, sizeof(*claims));

	if (!claims)
		return -ENOMEM;
	(void)pthread_mutex_init(&claims->lock, NULL);
	*ret_claims = claims;
	return 0;
}

struct poolclaims *poolclaims_free(struct poolclaims *claims)
{
	if (!claims)
		return NULL;
	map_deinit(&claims->by_number);
	(void)pthread_mutex_destroy(&claims->lock);
	free(claims);
	return NULL;
}

struct poolclaims_walk poolclaims_begin(struct poolclaims *claims, uint32_t pool, uid_t uid,
					unsigned n_lookups)
{
	struct poolclaims_walk walk = { .claims = claims, .pool = pool, .uid = uid };

	assert(pool < POOLS_MAX);
	(void)pthread_mutex_lock(&claims->lock);
	walk.serial = ++claims->last_serial;
	(void)pthread_mutex_unlock(&claims->lock);
	walk.n_lookups = n_lookups;
	return walk;
}

enum owner {
	OWNER_HE,    /* the user */
	OWNER_OTHER, /* another one, or that cannot be known */
	OWNER_NONE,  /* it has ended */
};

/* The kernel is asked directly: /proc may hide the processes of others, or there may be no
 * descriptor to look there. */
static bool has_ended(uint32_t number)
{
	return kill((pid_t)number, 0) < 0 && errno == ESRCH;
}

static enum owner find_owner(uint32_t number, uid_t uid)
{
	_cleanup_(claimant_deinit) struct claimant c = claimant_find(NULL, number);
	uid_t user;
	int r;

	r = c.pid_fd >= 0 ? claimant_user(&c, &user) : -ESRCH;
	if (r == 0)
		return user == uid ? OWNER_HE : OWNER_OTHER;
	return r == -ESRCH && has_ended(number) ? OWNER_NONE : OWNER_OTHER;
}

/* Forget the claims of a pool: @of_all, or of those that have ended. Keys cannot be removed from a
 * map, so another one is made with the claims that are kept. */
static void sweep(struct poolclaims *claims, uint32_t pool, bool of_all)
{
	struct map kept = {};

	memset(claims->n, 0, sizeof(claims->n));
	for (size_t i = 0; i < claims->by_number.n_slots; i++) {
		const struct map_slot *s = &claims->by_number.slots[i];
		const uint32_t owner = pool_of(s->value);

		if (!s->used || (owner == pool && (of_all || has_ended((uint32_t)s->key))))
			continue;
		/* What cannot be remembered is believed again when it is looked up. */
		if (map_put(&kept, s->key, s->value) < 0)
			break;
		claims->n[owner]++;
	}
	map_deinit(&claims->by_number);
	claims->by_number = kept;
}

/* Remember that the pool of the walk is believed. Return: whether there is room. */
static bool put_claim(struct poolclaims_walk *walk, uint32_t number)
{
	struct poolclaims *claims = walk->claims;
	const uint64_t *before = map_get(&claims->by_number, number);
	const uint32_t owner = before ? pool_of(*before) : NO_POOL;

	if (owner != walk->pool) {
		if (claims->n[walk->pool] >= POOLCLAIMS_MAX)
			sweep(claims, walk->pool, false);
		if (claims->n[walk->pool] >= POOLCLAIMS_MAX)
			return false;
	}
	if (map_put(&claims->by_number, number, make_claim(walk->pool, walk->serial)) < 0)
		return false;
	if (owner != walk->pool) {
		claims->n[walk->pool]++;
		if (owner != NO_POOL)
			claims->n[owner]--;
	}
	return true;
}

/* Return: whether there is a claim of @number. */
static bool get_claim(struct poolclaims *claims, uint32_t number, uint64_t *ret_claim)
{
	const uint64_t *claim;

	(void)pthread_mutex_lock(&claims->lock);
	claim = map_get(&claims->by_number, number);
	if (claim)
		*ret_claim = *claim;
	(void)pthread_mutex_unlock(&claims->lock);
	return claim != NULL;
}

/* Return: whether the pool may have the number, which @owner has now. */
static bool settle_claim(struct poolclaims_walk *walk, uint32_t number, enum owner owner)
{
	struct poolclaims *claims = walk->claims;
	const uint64_t *claim;
	bool is_his;

	(void)pthread_mutex_lock(&claims->lock);
	claim = map_get(&claims->by_number, number);
	is_his =
	    owner == OWNER_HE || (owner == OWNER_NONE && (!claim || pool_of(*claim) == walk->pool));
	is_his = is_his && put_claim(walk, number);
	(void)pthread_mutex_unlock(&claims->lock);
	return is_his;
}

bool poolclaims_believe(struct poolclaims_walk *walk, uint32_t number)
{
	uint64_t claim;
	bool is_known;

	if (number == 0 || number > INT32_MAX)
		return false;
	is_known = get_claim(walk->claims, number, &claim) && pool_of(claim) == walk->pool;
	if (walk->uid == ROOT) {
		/* No other pool is to be believed about what root's program was. */
		if (!is_known)
			(void)settle_claim(walk, number, OWNER_NONE);
		return true;
	}
	if (is_known && serial_of(claim) == walk->serial)
		return true;
	if (walk->n_lookups == 0)
		return false;
	walk->n_lookups--;
	return settle_claim(walk, number, find_owner(number, walk->uid));
}

bool poolclaims_find(struct poolclaims *claims, uint32_t number, uint32_t *ret_pool)
{
	uint64_t claim;

	if (!get_claim(claims, number, &claim))
		return false;
	*ret_pool = pool_of(claim);
	return true;
}

void poolclaims_forget(struct poolclaims *claims, uint32_t pool)
{
	(void)pthread_mutex_lock(&claims->lock);
	sweep(claims, pool, true);
	(void)pthread_mutex_unlock(&claims->lock);
}
