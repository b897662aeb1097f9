/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/asker.h"

#include <string.h>

#include "daemon/proc/process.h"
#include "util/map.h"

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

uint64_t asker_find(uint32_t pid, uid_t user, uint64_t dev, const char *path)
{
	uid_t real;

	if (pid > 0 && pid <= INT32_MAX && process_real_user_of(pid, &real) == 0)
		return real;
	return user > 0 ? user : unknown_asker(dev, path);
}

bool asker_is_unknown(uint64_t asker)
{
	return asker & UNKNOWN;
}
