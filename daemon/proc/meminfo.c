/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/meminfo.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "util/textfile.h"

#define LARGE_ORDER 9u /* 2 MiB */

uint64_t meminfo_available(void)
{
	return textfile_field("/proc/meminfo", "MemAvailable:", 10) << 10; /* of KiB */
}

/* Return: the number that the file @name of the group @path, whose hierarchy is mounted at @root,
 * holds, or one of a group above it; the least of them. */
static uint64_t limit_of_groups(const char *root, const char *path, const char *name)
{
	uint64_t least = UINT64_MAX, limit;
	char file[2 * PATH_MAX];

	for (size_t n = strlen(path);; n--) {
		_cleanup_(textfile_closep) FILE *f = NULL;

		(void)snprintf(file, sizeof(file), "%s%.*s/%s", root, (int)n, path, name);
		f = fopen(file, "re");
		if (f && fscanf(f, "%" SCNu64, &limit) == 1 && limit < least)
			least = limit;
		while (n > 0 && path[n - 1] != '/')
			n--;
		if (n == 0)
			return least;
	}
}

/* "4:memory:/PATH" and, of the second version, "0::/PATH". */
uint64_t meminfo_limit(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	_cleanup_(textfile_closep) FILE *f = fopen("/proc/self/cgroup", "re");
	uint64_t least = UINT64_MAX, limit;
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		const char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; path && i < ARRAY_LEN(roots); i++) {
			limit = strncmp(line, "0::", 3) == 0
				    ? limit_of_groups(roots[i], path, "memory.max")
				: strstr(line, ":memory:")
				    ? limit_of_groups("/sys/fs/cgroup/memory", path,
						      "memory.limit_in_bytes")
				    : UINT64_MAX;
			least = limit < least ? limit : least;
		}
	}
	return least;
}

/* "Node 0, zone   Normal      5      2 …": how many free pieces of one page, of two, of four, … */
static uint64_t large_of_zone(const char *line, uint64_t page)
{
	uint64_t bytes = 0;
	int at = 0;
	char *end;

	if (sscanf(line, "Node %*u, zone %*s%n", &at) != 0 || at == 0)
		return 0;
	line += at;
	for (unsigned order = 0; order < 32; order++, line = end) {
		const uint64_t n = strtoull(line, &end, 10);

		if (end == line)
			break;
		if (order >= LARGE_ORDER)
			bytes += n * (page << order);
	}
	return bytes;
}

uint64_t meminfo_large(void)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	_cleanup_(textfile_closep) FILE *f = fopen("/proc/buddyinfo", "re");
	uint64_t bytes = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		bytes += large_of_zone(line, page);
	return bytes;
}
