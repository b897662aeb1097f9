/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/asker.h"

#include <string.h>

#include "daemon/proc/claimant.h"
#include "record/codec.h"
#include "util/map.h"

/* User numbers have fewer bits. */
#define UNKNOWN   (UINT64_C(1) << 63)
#define BY_FOLDER (UINT64_C(1) << 62)

uint32_t asker_pid(const struct claims *claims, const struct record_mmap2 *mmap)
{
	const uint32_t pid = mmap->pid;

	return pid <= INT32_MAX && (!claims->is_writer || claims->is_writer(claims->userdata, pid))
		   ? pid
		   : 0;
}

static uint64_t unknown_asker(uint64_t dev, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (dev > 0)
		return UNKNOWN | (dev & ~BY_FOLDER);
	return UNKNOWN | BY_FOLDER | map_hash(path, slash ? (size_t)(slash - path) : 0);
}

uint64_t asker_find(uint32_t pid, uid_t user, uint64_t dev, const char *path)
{
	_cleanup_(claimant_deinit) struct claimant by = { .pid_fd = -1 };
	uid_t real;

	if (pid > 0)
		by = claimant_find(NULL, pid);
	if (by.pid_fd >= 0 && claimant_real_user(&by, &real))
		return real;
	return user > 0 ? user : unknown_asker(dev, path);
}

bool asker_is_unknown(uint64_t asker)
{
	return asker & UNKNOWN;
}
