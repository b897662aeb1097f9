/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/meminfo.h"

#include <inttypes.h>
#include <stdio.h>

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
