/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/meminfo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGE_ORDER 9u /* 2 MiB */

uint64_t meminfo_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kib = 0;
	char line[128];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1)
			break;
	(void)fclose(f);
	return kib << 10;
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
	FILE *f = fopen("/proc/buddyinfo", "re");
	uint64_t bytes = 0;
	char line[512];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		bytes += large_of_zone(line, page);
	(void)fclose(f);
	return bytes;
}
