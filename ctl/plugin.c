/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NAME "ptd-emu.so"

/* Remove the last part of a path. */
static void go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
}

int plugin_find(char **ret_path)
{
	const char *from_env = getenv("PTD_EMU_SO");
	_cleanup_(freep) char *path = NULL;
	char self[PATH_MAX];
	ssize_t n;

	if (from_env && from_env[0]) {
		*ret_path = realpath(from_env, NULL);
		if (!*ret_path)
			*ret_path = strdup(from_env);
		return *ret_path ? 0 : -ENOMEM;
	}

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return -errno;
	self[n] = 0;
	go_up(self);
	if (asprintf(&path, "%s/" NAME, self) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (access(path, F_OK) < 0) {
		free(path);
		go_up(self);
		if (asprintf(&path, "%s/lib/ptd/" NAME, self) < 0) {
			path = NULL;
			return -ENOMEM;
		}
	}
	*ret_path = TAKE(path);
	return 0;
}
