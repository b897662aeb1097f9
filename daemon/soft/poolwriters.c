/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/poolwriters.h"

#include <limits.h>
#include <string.h>

#include "daemon/proc/birth.h"
#include "daemon/soft/poolasker.h"
#include "daemon/tasks/tasks.h"

/* Return: whether the process may be one that was given the pool. If that cannot be found out, it
 * may be one unless it is older than the process that made the pool. */
static bool may_write(const struct poolwriters *w, uint32_t pid)
{
	const int r = poolasker_ask(w->asker, pid, w->pool_fd);

	return r < 0 ? birth_of(pid) >= w->born : r > 0;
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
	return poolasker_ask(writers->asker, pid, writers->pool_fd) > 0;
}
