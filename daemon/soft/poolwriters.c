/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/poolwriters.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/proc/birth.h"
#include "daemon/proc/textfile.h"
#include "daemon/tasks/tasks.h"
#include "util/execfile.h"
#include "util/mapsline.h"

/* Return: 1, 0, or negative errno if that cannot be known: other users' mappings are not ours to
 * read. */
static int has_pool(const struct poolwriters *w, uint32_t pid)
{
	_cleanup_(textfile_closep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	struct mapsline l;
	size_t size = 0;
	bool found = false;
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	f = fstat(w->pool_fd, &st) == 0 ? fopen(path, "re") : NULL;
	if (!f)
		return -errno;
	while (!found && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = mapsline_parse(line, &l) == 0 && l.ino == st.st_ino &&
			makedev(l.maj, l.min) == st.st_dev;
	}
	return found;
}

/* May @pid be a program that was given the pool? What cannot be known is believed of those that are
 * no older than who made the pool. */
static bool may_write(const struct poolwriters *w, uint32_t pid)
{
	const int r = has_pool(w, pid);

	return r == -EACCES || r == -EPERM ? birth_of(pid) >= w->born : r > 0;
}

void poolwriters_note(struct poolwriters *writers, uint32_t pid, unsigned *n_checks)
{
	for (size_t i = 0; i < writers->n; i++)
		if (writers->pids[i] == pid)
			return;
	if (*n_checks == POOLWRITERS_MAX || pid == 0 || pid > INT32_MAX)
		return;
	++*n_checks;
	if (!may_write(writers, pid))
		return;
	/* Trees of processes have many that are short-lived. */
	for (size_t i = writers->n == POOLWRITERS_MAX ? POOLWRITERS_MAX : 0; i > 0; i--)
		if (!tasks_is_alive(writers->pids[i - 1]))
			writers->pids[i - 1] = writers->pids[--writers->n];
	if (writers->n < POOLWRITERS_MAX)
		writers->pids[writers->n++] = pid;
}

bool poolwriters_alive(struct poolwriters *writers)
{
	while (writers->n > 0) {
		if (tasks_is_alive(writers->pids[writers->n - 1]))
			return true;
		writers->n--;
	}
	return false;
}

bool poolwriters_has_pool(const struct poolwriters *writers, uint32_t pid)
{
	return has_pool(writers, pid) > 0;
}
