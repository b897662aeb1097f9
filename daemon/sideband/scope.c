/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/sideband/scope.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/proc/process.h"
#include "daemon/sideband/sideband.h"
#include "ptd/snapshot.h"
#include "util/dirs.h"
#include "util/perf/record.h"
#include "util/vec.h"

#define PIDS_A_LINE 256 /* in the manifest */

/* That one process started another. */
struct birth {
	uint32_t pid, ppid;
};

struct births {
	VEC(struct birth) list;
};

/* An end says whose child it was, too. */
static int add_recorded(struct births *births, struct cursor records)
{
	struct record_task task;
	struct record record;
	int r = 0;

	while (r == 0 && record_next(&records, &record) == 0)
		if (record_get_task(&record, &task) == 0 && task.pid != task.ppid)
			r = vec_push(&births->list, { task.pid, task.ppid });
	return r;
}

/* Return: 0 if it has ended. */
static uint32_t parent_of(int proc_fd, const char *pid)
{
	char path[32], text[PROCESS_STAT_SIZE];
	const char *fields;
	uint32_t ppid;

	(void)snprintf(path, sizeof(path), "%.11s/stat", pid);
	fields = process_stat(proc_fd, path, text);
	return fields && sscanf(fields, "%*c %" SCNu32, &ppid) == 1 ? ppid : 0;
}

static int add_living(struct births *births, int proc_fd)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(proc_fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0) {
		const uint32_t ppid = isdigit((unsigned char)entry->d_name[0])
					  ? parent_of(proc_fd, entry->d_name)
					  : 0;

		if (ppid == 0)
			continue;
		r = vec_push(&births->list, { (uint32_t)strtoul(entry->d_name, NULL, 10), ppid });
		if (r < 0)
			return r;
	}
	return r;
}

/* The record of an end may come before that of the parent, so all are read again as long as
 * processes are found. */
static int add_descendants(const struct births *births, struct map *pids)
{
	size_t before;
	int r = 0;

	do {
		before = pids->n_used;
		for (size_t i = 0; r == 0 && i < births->list.n; i++) {
			const struct birth *b = &births->list.items[i];

			if (map_get(pids, b->ppid))
				r = map_put(pids, b->pid, 1);
		}
	} while (r == 0 && pids->n_used > before);
	return r;
}

int scope_pids(const struct scope *scope, const struct sideband_view *tasks, int proc_fd,
	       struct map *ret_pids)
{
	struct births births = {};
	int r;

	r = scope->pid > 0 ? map_put(ret_pids, scope->pid, 1) : 0;
	for (size_t i = 0; r == 0 && i < tasks->n_spans; i++)
		r = add_recorded(&births, tasks->spans[i]);
	if (r == 0)
		r = add_living(&births, proc_fd);
	if (r == 0)
		r = add_descendants(&births, ret_pids);
	vec_deinit(&births.list);
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

static int add_if_asked(const struct map *pids, uint32_t pid, struct map *ran)
{
	return map_get(pids, pid) ? map_put(ran, pid, 1) : 0;
}

int scope_add_ran(const struct map *pids, struct cursor switches, struct map *ret_ran)
{
	struct record record;
	int r = 0;

	while (r == 0 && record_next(&switches, &record) == 0) {
		uint32_t other; /* who comes, or went */

		r = add_if_asked(pids, record.trailer.pid, ret_ran);
		if (r == 0 && cursor_get(&record.body, sizeof(other), &other) == 0)
			r = add_if_asked(pids, other, ret_ran);
	}
	return r;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return COMPARE(*x, *y);
}

/* The same pids give the same lines. None is longer than a reader of manifests takes. */
static void write_pids(const struct map *pids, FILE *f)
{
	uint64_t *sorted = calloc(pids->n_used ? pids->n_used : 1, sizeof(*sorted));
	size_t n = 0;

	/* Without the lines the decoder takes what the others executed for lost. */
	if (!sorted)
		return;
	for (size_t i = 0; i < pids->n_slots; i++)
		if (pids->slots[i].used)
			sorted[n++] = pids->slots[i].key;
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%" PRIu64 "%s", i % PIDS_A_LINE ? "," : PTD_MANIFEST_SCOPE_PIDS "=",
			sorted[i], i + 1 == n || (i + 1) % PIDS_A_LINE == 0 ? "\n" : "");
	free(sorted);
}

void scope_write_manifest(const struct scope *scope, const struct map *ran, int64_t shift_ns,
			  FILE *f)
{
	const char *comma = "";

	if (scope->command[0])
		fprintf(f, PTD_MANIFEST_COMMAND "=%s\n", scope->command);
	if (scope->command_pid > 0)
		fprintf(f, PTD_MANIFEST_COMMAND_PID "=%" PRIu32 "\n", scope->command_pid);
	if (scope->trigger[0])
		fprintf(f,
			PTD_MANIFEST_TRIGGER "=%s\n" PTD_MANIFEST_TRIGGER_TID "=%" PRIu32
					     "\n" PTD_MANIFEST_TRIGGER_TIME "=%" PRIu64 "\n",
			scope->trigger, scope->trigger_tid, scope->trigger_ns + (uint64_t)shift_ns);
	if (scope->pid > 0)
		fprintf(f, "scope_pid=%" PRIu32 "\n", scope->pid);
	if (scope->cgroup[0])
		fprintf(f, "scope_cgroup=%s\n", scope->cgroup);
	if (scope_has_processes(scope))
		write_pids(ran, f);
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
