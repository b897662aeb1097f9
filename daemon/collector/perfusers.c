/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/collector/perfusers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LISTED_MAX 8u

static bool is_perf_event(int dir, const char *name)
{
	static const char link[] = "anon_inode:[perf_event]";
	char target[sizeof(link) + 1];
	const ssize_t n = readlinkat(dir, name, target, sizeof(target));

	return n == (ssize_t)sizeof(link) - 1 && memcmp(target, link, (size_t)n) == 0;
}

/* Return: whether the process has perf events; -EACCES if we may not know. */
static int has_perf_events(const char *pid)
{
	struct dirent *entry;
	char path[300];
	int found = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!found && (entry = readdir(dir)))
		found = is_perf_event(dirfd(dir), entry->d_name);
	(void)closedir(dir);
	return found;
}

static void name_of(const char *pid, char ret_name[64])
{
	char path[300];
	FILE *f;

	(void)snprintf(ret_name, 64, "?");
	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(ret_name, 64, f))
		ret_name[strcspn(ret_name, "\n")] = 0;
	(void)fclose(f);
}

void perfusers_list(pid_t except, char *ret_text, size_t size)
{
	bool blind = false;
	struct dirent *entry;
	unsigned listed = 0;
	size_t n = 0;
	DIR *dir;

	dir = opendir("/proc");
	while (dir && (entry = readdir(dir))) {
		char name[64];
		int r;

		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == except)
			continue;
		r = has_perf_events(entry->d_name);
		blind |= r == -EACCES;
		if (r <= 0 || listed == LISTED_MAX || n >= size)
			continue;
		name_of(entry->d_name, name);
		n += (size_t)snprintf(ret_text + n, size - n, "%s%s[%s]", listed++ ? ", " : "",
				      name, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	if (listed == 0)
		(void)snprintf(ret_text, size,
			       blind ? "a process that may not be looked into"
				     : "no visible process (a hypervisor, or LBR or BTS events)");
}
