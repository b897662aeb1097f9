/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/memtrace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/tracedir.h"
#include "decoder/drmemtrace/tracerecord.h"

void memtrace_deinit(struct memtrace *trace)
{
	for (size_t i = 0; i < trace->files.n; i++)
		free(trace->files.items[i].path);
	vec_deinit(&trace->files);
	free(trace->serial_schedule);
	free(trace->cpu_schedule);
	schedule_deinit(&trace->schedule);
	names_deinit(&trace->functions);
	names_deinit(&trace->symbols);
}

_printf_(3, 4) static void fault(struct memtrace *trace, const char *path, const char *format, ...)
{
	va_list ap;

	trace->n_faults++;
	fprintf(trace->faults, "%s: ", path);
	va_start(ap, format);
	(void)vfprintf(trace->faults, format, ap);
	va_end(ap);
	fputc('\n', trace->faults);
}

/* Take an entry of the directory as a trace file, or say why it is none. */
static int add_file(struct memtrace *trace, struct tracedir_entry *entry)
{
	int r;

	switch (entry->kind) {
	case TRACEDIR_ODD:
		fault(trace, entry->path,
		      "not a regular file: everything in the trace directory is read as a trace");
		return 0;
	case TRACEDIR_SERIAL_SCHEDULE:
		free(trace->serial_schedule);
		trace->serial_schedule = TAKE(entry->path);
		return 0;
	case TRACEDIR_CPU_SCHEDULE:
		free(trace->cpu_schedule);
		trace->cpu_schedule = TAKE(entry->path);
		return 0;
	case TRACEDIR_TRACE:
		break;
	}
	r = vec_push(&trace->files, { .path = entry->path });
	if (r == 0)
		entry->path = NULL;
	return r;
}

static void fault_in_table(void *userdata, const char *path, size_t line)
{
	fault(userdata, path, "line %zu does not begin with a number of its own", line);
}

int memtrace_find(struct memtrace *trace, const char *dir, char **reterr_path)
{
	_cleanup_(tracedir_deinit) struct tracedir files = {};
	int r;

	r = tracedir_read(dir, &files, reterr_path);
	for (size_t i = 0; i < files.entries.n && r == 0; i++)
		r = add_file(trace, &files.entries.items[i]);
	if (r == 0 && trace->files.n == 0)
		fault(trace, files.path, "there is no trace file");
	if (r == 0)
		r = names_read(&trace->functions, dir, "funclist.log", ',', fault_in_table, trace,
			       reterr_path);
	if (r == 0)
		r = names_read(&trace->symbols, dir, "symbols.tsv", '\t', fault_in_table, trace,
			       reterr_path);
	return r;
}

/* Check, or only peek at, the file. */
static int read_file(struct memtrace *trace, struct memtrace_file *file, bool peek)
{
	struct memtrace_file read = {};
	int r;

	r = peek ? memtrace_peek(file->path, &read) : memtrace_check_file(trace, file->path, &read);
	if (r < 0)
		return r;
	read.path = file->path;
	*file = read;
	return 0;
}

/* Check a schedule file. Return: 0, or negative errno and the path. */
static int check_schedule(struct memtrace *trace, const char *path, char **reterr_path)
{
	_cleanup_(freep) char *text = NULL;
	int r = 0;

	if (!path)
		return 0;
	r = schedule_compare(&trace->schedule, path, path == trace->cpu_schedule, &text);
	if (r > 0)
		fault(trace, path, "%s", text);
	if (r < 0)
		*reterr_path = strdup(path);
	return r < 0 ? r : 0;
}

int memtrace_check(struct memtrace *trace, char **reterr_path)
{
	int r;

	for (size_t i = 0; i < trace->files.n; i++) {
		struct memtrace_file *file = &trace->files.items[i];

		r = read_file(trace, file, false);
		if (r < 0) {
			*reterr_path = strdup(file->path);
			return r;
		}
		if (file->file_type != trace->files.items[0].file_type)
			fault(trace, file->path,
			      "all files of a trace have the same file type, but %#" PRIx64
			      " is not %#" PRIx64 " as in %s",
			      file->file_type, trace->files.items[0].file_type,
			      trace->files.items[0].path);
	}
	/* Of a file for each core, it does not follow from the files what the schedule counts. */
	if (trace->files.n > 0 && trace->files.items[0].file_type & FILE_TYPE_CORES)
		return 0;
	r = check_schedule(trace, trace->serial_schedule, reterr_path);
	return r < 0 ? r : check_schedule(trace, trace->cpu_schedule, reterr_path);
}

static int by_first_time(const void *a, const void *b)
{
	const struct memtrace_file *x = a, *y = b;

	if (x->first_time != y->first_time)
		return x->first_time < y->first_time ? -1 : 1;
	return strcmp(x->path, y->path);
}

int memtrace_select(struct memtrace *trace, uint64_t pid, uint64_t tid, char **reterr_path)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->files.n; i++) {
		struct memtrace_file *file = &trace->files.items[i];
		const int r = read_file(trace, file, true);

		if (r < 0) {
			*reterr_path = strdup(file->path);
			return r;
		}
	}
	for (size_t i = 0; i < trace->files.n; i++) {
		struct memtrace_file *file = &trace->files.items[i];

		if (file->pid == pid && file->tid == tid)
			trace->files.items[n++] = *file;
		else
			free(file->path);
	}
	trace->files.n = n;
	/* The schedule files are about all threads. */
	free(trace->serial_schedule);
	free(trace->cpu_schedule);
	trace->serial_schedule = trace->cpu_schedule = NULL;
	if (n == 0)
		return -ENOENT;
	qsort(trace->files.items, n, sizeof(*trace->files.items), by_first_time);
	return 0;
}
