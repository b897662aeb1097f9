/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/asker.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/proc/process.h"

#define KNOWN_NS  UINT64_C(250000000)
#define KNOWN_MAX 4096u

/* The event loop waits for an asker for so long in each stretch of time, and not again for so long
 * if it was in vain. */
#define WAIT_NS    UINT64_C(50000000)
#define STRETCH_NS UINT64_C(500000000)
#define VAIN_NS    UINT64_C(10000000000)
#define ASKERS_MAX 1024u

/* User numbers have fewer bits. */
#define UNKNOWN   (UINT64_C(1) << 63)
#define BY_FOLDER (UINT64_C(1) << 62)

static uint64_t unknown_asker(uint64_t dev, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (dev > 0)
		return UNKNOWN | (dev & ~BY_FOLDER);
	return UNKNOWN | BY_FOLDER | map_hash(path, slash ? (size_t)(slash - path) : 0);
}

void askers_deinit(struct askers *askers)
{
	map_deinit(&askers->users);
}

/* Return: 0 and the user of a process that lives; or negative errno. */
static int find_user(struct askers *askers, uint32_t pid, uid_t *ret_user)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const uint64_t *known;
	int r;

	if (now - askers->since_ns > KNOWN_NS || askers->users.n_used >= KNOWN_MAX) {
		map_deinit(&askers->users);
		*askers = (struct askers){ .since_ns = now };
	}
	known = map_get(&askers->users, pid);
	if (known) {
		*ret_user = (uid_t)*known;
		return 0;
	}
	r = process_real_user_of(pid, ret_user);
	return r < 0 ? r : map_put(&askers->users, pid, *ret_user);
}

uint64_t asker_find(struct askers *askers, uint32_t pid, uid_t user, uint64_t dev, const char *path)
{
	uid_t real;

	if (pid > 0 && pid <= INT32_MAX && find_user(askers, pid, &real) == 0)
		return real;
	return user > 0 ? user : unknown_asker(dev, path);
}

bool asker_is_unknown(uint64_t asker)
{
	return asker & UNKNOWN;
}

void patience_deinit(struct patience *patience)
{
	map_deinit(&patience->waited);
	map_deinit(&patience->over);
}

bool patience_begin(struct patience *patience, uint64_t asker)
{
	const uint64_t *until = map_get(&patience->over, asker);

	patience->begun = clock_ns(CLOCK_MONOTONIC);
	return !until || patience->begun >= *until;
}

/* Without memory for it, it is waited again. */
static void note(struct map *map, uint64_t asker, uint64_t value)
{
	if (map->n_used >= ASKERS_MAX)
		map_deinit(map);
	(void)!map_put(map, asker, value);
}

int patience_end(struct patience *patience, uint64_t asker, int r)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const uint64_t *before;
	uint64_t waited;

	if (asker == ASKER_ROOT)
		return r;
	if (now - patience->stretch_ns > STRETCH_NS) {
		map_deinit(&patience->waited);
		patience->stretch_ns = now;
	}
	before = map_get(&patience->waited, asker);
	waited = now - patience->begun + (before ? *before : 0);
	note(&patience->waited, asker, waited);
	if (waited > WAIT_NS)
		note(&patience->over, asker, patience->stretch_ns + STRETCH_NS);
	if (r == -ETIMEDOUT)
		note(&patience->over, asker, now + VAIN_NS);
	return r;
}
