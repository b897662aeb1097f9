/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/tracedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ptd/snapshot.h"
#include "util/dirs.h"
#include "util/message.h"

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Names that DynamoRIO passes over. */
static bool is_passed_over(const char *name)
{
	static const char *const names[] = { "modules.log", "funclist.log", "encodings.bin",
					     "v2p.textproto" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Add the entry at @path, which is handed over; @is_top: there is no directory "trace". */
static int add_entry(struct tracedir *tracedir, char *path, const char *name, bool is_top)
{
	_cleanup_(freep) char *owned = path;
	enum tracedir_kind kind = TRACEDIR_TRACE;
	struct stat st;
	int r;

	if (is_passed_over(name))
		return 0;
	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) && is_top && (!strcmp(name, "raw") || !strcmp(name, "aux")))
		return 0;
	if (!S_ISREG(st.st_mode))
		kind = TRACEDIR_ODD;
	else if (begins_with(name, "serial_schedule.bin"))
		kind = TRACEDIR_SERIAL_SCHEDULE;
	else if (strcmp(name, "cpu_schedule.bin.zip") == 0)
		kind = TRACEDIR_CPU_SCHEDULE;
	if (tracedir->entries.n == TRACEDIR_FILES_MAX)
		return -EFBIG;
	r = vec_push(&tracedir->entries, { .path = path, .kind = kind });
	if (r == 0)
		(void)TAKE(owned);
	return r;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tracedir_entry *)a)->path,
		      ((const struct tracedir_entry *)b)->path);
}

/* Open the directory that has the files. Return: 0, or negative errno and @tracedir->path. */
static int open_files(struct tracedir *tracedir, const char *dir, DIR **ret_stream,
		      bool *ret_is_top)
{
	for (int is_top = 0; is_top < 2; is_top++) {
		free(tracedir->path);
		tracedir->path = message_text(is_top ? "%s" : "%s/trace", dir);
		if (!tracedir->path)
			return -ENOMEM;
		*ret_stream = opendir(tracedir->path);
		*ret_is_top = is_top;
		if (*ret_stream)
			return 0;
	}
	return -errno;
}

static int read_entries(struct tracedir *tracedir, DIR *stream, bool is_top)
{
	struct dirent *entry;
	int r;

	while ((r = dirs_next(stream, &entry)) > 0) {
		char *path = message_text("%s/%s", tracedir->path, entry->d_name);

		r = path ? add_entry(tracedir, path, entry->d_name, is_top) : -ENOMEM;
		if (r < 0)
			return r;
	}
	return r;
}

int tracedir_read(const char *dir, struct tracedir *ret_tracedir, char **reterr_path)
{
	_cleanup_(tracedir_deinit) struct tracedir tracedir = {};
	_cleanup_(dirs_closep) DIR *stream = NULL;
	bool is_top = false;
	int r;

	r = open_files(&tracedir, dir, &stream, &is_top);
	if (r == 0)
		r = read_entries(&tracedir, stream, is_top);
	if (r < 0) {
		*reterr_path = TAKE(tracedir.path);
		return r;
	}
	vec_sort(&tracedir.entries, by_path);
	*ret_tracedir = tracedir;
	tracedir = (struct tracedir){};
	return 0;
}

void tracedir_deinit(struct tracedir *tracedir)
{
	vec_deinit_each(&tracedir->entries, entry, free(entry->path));
	free(tracedir->path);
	tracedir->path = NULL;
}

/* Return: whether a file called so belongs to perf's and ptd's recordings. */
static bool has_recording(int fd)
{
	return faccessat(fd, PTD_SNAPSHOT_DATA, F_OK, 0) == 0 ||
	       faccessat(fd, PTD_SNAPSHOT_MANIFEST, F_OK, 0) == 0;
}

bool tracedir_is(const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(dirs_closep) DIR *stream = NULL;
	struct dirent *entry;
	struct stat st;

	if (fd < 0 || has_recording(fd))
		return false;
	if (fstatat(fd, "trace", &st, 0) == 0 && S_ISDIR(st.st_mode))
		return true;
	stream = dirs_list(fd);
	while (stream && dirs_next(stream, &entry) > 0)
		if (begins_with(entry->d_name, "drmemtrace."))
			return true;
	return false;
}

int tracedir_find(const char *dir, const char *name, char **ret_path)
{
	static const char *const places[] = { "aux/", "", "raw/", "trace/" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char *path = message_text("%s/%s%s", dir, places[i], name);

		if (!path)
			return -ENOMEM;
		if (access(path, F_OK) == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
	}
	return -ENOENT;
}
