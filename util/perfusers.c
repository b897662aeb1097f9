/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/perfusers.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "util/dirs.h"
#include "util/textfile.h"

#define LISTED_MAX 8
#define NAME_SIZE  64

static bool is_perf_event(int dir, const char *name)
{
	static const char link[] = "anon_inode:[perf_event]";
	char target[sizeof(link) + 1];
	const ssize_t n = readlinkat(dir, name, target, sizeof(target));

	return n == (ssize_t)sizeof(link) - 1 && memcmp(target, link, (size_t)n) == 0;
}

/* Return: whether the process has perf events; -EACCES if we may not know. */
static int has_perf_events(const char *root, const char *pid)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	struct dirent *entry;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/proc/%s/fd", root, pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (dirs_next(dir, &entry) > 0)
		if (is_perf_event(dirfd(dir), entry->d_name))
			return true;
	return false;
}

static void name_of(int proc_fd, const char *pid, char ret_name[static NAME_SIZE])
{
	char path[NAME_MAX + 8];

	(void)snprintf(path, sizeof(path), "%s/comm", pid);
	if (textfile_read(proc_fd, path, ret_name, NAME_SIZE) < 0)
		(void)snprintf(ret_name, NAME_SIZE, "?");
	ret_name[strcspn(ret_name, "\n")] = '\0';
	printable_clean(ret_name, strlen(ret_name));
}

int perfusers_list(const char *root, pid_t except, char *ret_text, size_t size)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	char path[PATH_MAX], name[NAME_SIZE];
	struct dirent *entry;
	bool blind = false;
	size_t used = 0;
	int n = 0;

	ret_text[0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/proc", root);
	dir = opendir(path);
	while (dir && n < LISTED_MAX && used < size && dirs_next(dir, &entry) > 0) {
		const char *pid = entry->d_name;
		int r;

		if (!isdigit((unsigned char)pid[0]) || atoi(pid) == except)
			continue;
		r = has_perf_events(root, pid);
		blind |= r == -EACCES;
		if (r <= 0)
			continue;
		name_of(dirfd(dir), pid, name);
		used += (size_t)snprintf(ret_text + used, size - used, "%s%s[%s]", n++ ? ", " : "",
					 name, pid);
	}
	return n == 0 && blind ? -EACCES : n;
}
