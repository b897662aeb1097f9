/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/scope.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/record.h"
#include "daemon/sideband.h"

int scope_pids(const struct scope *scope, const struct sideband_view *tasks, struct map *ret_pids)
{
	int r = map_put(ret_pids, scope->pid, 1);

	for (size_t i = 0; i < tasks->n_spans; i++) {
		struct cursor c = tasks->spans[i];
		struct record_task fork;
		struct record record;

		while (r == 0 && record_next(&c, &record) == 0)
			if (record.header.type == PERF_RECORD_FORK &&
			    record_get_task(&record, &fork) == 0 && map_get(ret_pids, fork.ppid))
				r = map_put(ret_pids, fork.pid, 1);
	}
	return r;
}

bool scope_ran(const struct map *pids, struct cursor switches)
{
	struct record record;
	bool any = false;

	while (record_next(&switches, &record) == 0) {
		uint32_t other; /* who comes, or went */

		any = true;
		if (map_get(pids, record.trailer.pid))
			return true;
		if (cursor_get(&record.body, sizeof(other), &other) == 0 && map_get(pids, other))
			return true;
	}
	return !any;
}

void scope_print(const struct scope *scope, FILE *f)
{
	const char *comma = "";

	if (scope->pid > 0)
		fprintf(f, "scope_pid=%" PRIu32 "\n", scope->pid);
	if (!scope->some_cpus)
		return;
	fputs("scope_cpus=", f);
	for (uint32_t i = 0; i < scope->cpus.end; i++)
		if (cpulist_has(&scope->cpus, i)) {
			fprintf(f, "%s%" PRIu32, comma, i);
			comma = ",";
		}
	fputc('\n', f);
}
