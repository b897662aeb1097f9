/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Remove the last part of a path. */
static void go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
}

/* Return: 0, or -ENAMETOOLONG. */
static int join(const char *folder, const char *place, char ret_path[static PATH_MAX])
{
	char from[PATH_MAX];

	(void)snprintf(from, sizeof(from), "%s", folder);
	for (; strncmp(place, "../", 3) == 0; place += 3)
		go_up(from);
	return (size_t)snprintf(ret_path, PATH_MAX, "%s/%s", from, place) >= PATH_MAX
		   ? -ENAMETOOLONG
		   : 0;
}

int beside_find(const char *const *places, size_t n_places, int mode,
		char ret_path[static PATH_MAX])
{
	char folder[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	if (n < 0)
		return -errno;
	folder[n] = 0;
	go_up(folder);
	for (size_t i = 0; i < n_places; i++) {
		const int r = join(folder, places[i], ret_path);

		if (r < 0)
			return r;
		if (access(ret_path, mode) == 0)
			return 0;
	}
	return BESIDE_NOWHERE;
}
