/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/memtrace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void memtrace_deinit(struct memtrace *trace)
{
	for (size_t i = 0; i < trace->files.n; i++)
		free(trace->files.items[i].path);
	vec_deinit(&trace->files);
}

static bool ends_with(const char *name, const char *suffix)
{
	const size_t n = strlen(name), n_suffix = strlen(suffix);

	return n >= n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
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

/* Names that DynamoRIO passes over. What schedules say is checked by tests/tools/schedule.py. */
static bool is_ignored(const char *name)
{
	static const char *const names[] = {
		"modules.log",   "funclist.log",           "encodings.bin",
		"v2p.textproto", "serial_schedule.bin.gz", "cpu_schedule.bin.zip"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* Take one directory entry as a trace file, or say why it is none. @path is handed over. */
static int add_file(struct memtrace *trace, char *path, const char *name, bool is_top)
{
	_cleanup_(freep) char *owned = path;
	struct stat st;
	int r;

	if (is_ignored(name))
		return 0;
	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) && is_top && (!strcmp(name, "raw") || !strcmp(name, "aux")))
		return 0;
	if (!S_ISREG(st.st_mode)) {
		fault(trace, path,
		      "not a regular file: everything in the trace directory is read as a "
		      "trace");
		return 0;
	}
	if (ends_with(name, ".zip") || ends_with(name, ".lz4") || ends_with(name, ".sz"))
		fault(trace, path,
		      "the name's suffix picks a decompressor, but the file is to be plain");
	r = vec_push(&trace->files, { .path = path });
	if (r == 0)
		(void)TAKE(owned);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct memtrace_file *)a)->path,
		      ((const struct memtrace_file *)b)->path);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

int memtrace_find(struct memtrace *trace, const char *dir, char **reterr_path)
{
	_cleanup_(closedirp) DIR *stream = NULL;
	_cleanup_(freep) char *where = NULL;
	struct dirent *entry;
	bool is_top;
	int r;

	if (asprintf(&where, "%s/trace", dir) < 0)
		return -ENOMEM;
	stream = opendir(where);
	is_top = !stream;
	if (is_top) {
		free(where);
		where = strdup(dir);
		stream = where ? opendir(where) : NULL;
	}
	if (!stream) {
		r = -errno;
		*reterr_path = TAKE(where);
		return r;
	}

	while ((entry = readdir(stream))) {
		char *path;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (asprintf(&path, "%s/%s", where, entry->d_name) < 0)
			return -ENOMEM;
		r = add_file(trace, path, entry->d_name, is_top);
		if (r < 0) {
			*reterr_path = TAKE(where);
			return r;
		}
	}
	if (trace->files.n == 0)
		fault(trace, where, "there is no trace file");
	else
		qsort(trace->files.items, trace->files.n, sizeof(*trace->files.items), by_name);
	return 0;
}

struct mapping {
	uint8_t *bytes;
	size_t size;
};

static void mapping_deinit(struct mapping *mapping)
{
	if (mapping->bytes)
		(void)munmap(mapping->bytes, mapping->size);
}

static int mapping_init(struct mapping *mapping, const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	*mapping = (struct mapping){};
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return 0;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	/* Only a hint: pages read ahead, and dropped first when memory is short. */
	(void)madvise(bytes, (size_t)st.st_size, MADV_SEQUENTIAL);
	*mapping = (struct mapping){ .bytes = bytes, .size = (size_t)st.st_size };
	return 0;
}

/* Check, or only peek at, the file. */
static int read_file(struct memtrace *trace, struct memtrace_file *file, bool peek)
{
	_cleanup_(mapping_deinit) struct mapping mapping = {};
	struct memtrace_file read = {};
	int r;

	r = mapping_init(&mapping, file->path);
	if (r < 0)
		return r;
	if (peek)
		memtrace_peek(mapping.bytes, mapping.size, &read);
	else
		r = memtrace_check_bytes(trace, file->path, mapping.bytes, mapping.size, &read);
	if (r < 0)
		return r;
	read.path = file->path;
	*file = read;
	return 0;
}

int memtrace_check(struct memtrace *trace, char **reterr_path)
{
	for (size_t i = 0; i < trace->files.n; i++) {
		struct memtrace_file *file = &trace->files.items[i];
		const int r = read_file(trace, file, false);

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
	return 0;
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
	if (n == 0)
		return -ENOENT;
	qsort(trace->files.items, n, sizeof(*trace->files.items), by_first_time);
	return 0;
}
