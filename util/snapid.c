/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/snapid.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ptd/snapshot.h"
#include "util/dirs.h"

#define TIME_FORMAT "%Y%m%dT%H%M%S"

void snapid_print(const struct timespec *now, uint64_t sequence, char ret_id[static SNAPID_SIZE])
{
	struct tm tm;
	char time[32];

	gmtime_r(&now->tv_sec, &tm);
	(void)strftime(time, sizeof(time), TIME_FORMAT, &tm);
	(void)snprintf(ret_id, SNAPID_SIZE, "%s.%06uZ-%" PRIu64, time,
		       (unsigned)(now->tv_nsec / 1000), sequence);
}

bool snapid_valid(const char *id)
{
	static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.-";
	const size_t n = strlen(id);

	return n > 0 && n < SNAPID_SIZE && id[0] != '.' && strspn(id, allowed) == n;
}

uint64_t snapid_sequence(const char *id)
{
	const char *dash = strrchr(id, '-');

	return dash ? strtoull(dash + 1, NULL, 10) : 0;
}

int64_t snapid_time(const char *id)
{
	struct tm tm = {};
	const char *end = strptime(id, TIME_FORMAT, &tm);

	return end && *end == '.' ? timegm(&tm) : -EINVAL;
}

int snapid_compare(const char *a, const char *b)
{
	const uint64_t m = snapid_sequence(a), n = snapid_sequence(b);

	return m != n ? (m > n) - (m < n) : strcmp(a, b);
}

int snapid_latest(int dir_fd, char ret_id[static SNAPID_SIZE])
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(dir_fd);
	char path[SNAPID_SIZE + 16], latest[SNAPID_SIZE] = "";
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0) {
		if (!snapid_valid(entry->d_name) ||
		    (latest[0] && snapid_compare(entry->d_name, latest) < 0))
			continue;
		(void)snprintf(path, sizeof(path), "%.*s/" PTD_SNAPSHOT_MANIFEST, SNAPID_SIZE - 1,
			       entry->d_name);
		if (faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			(void)snprintf(latest, sizeof(latest), "%.*s", SNAPID_SIZE - 1,
				       entry->d_name);
	}
	if (r < 0)
		return r;
	if (!latest[0])
		return -ENOENT;
	memcpy(ret_id, latest, sizeof(latest));
	return 0;
}
