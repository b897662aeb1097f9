/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/beside.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/message.h"

/* Return: the size of the first @size bytes of a path without its last part. */
static size_t size_above(const char *path, size_t size)
{
	const char *slash = memrchr(path, '/', size);

	return slash ? (size_t)(slash - path) : size;
}

int beside_find(const char *const *places, size_t n_places, int mode, char **ret_path)
{
	_cleanup_(freep) char *path = NULL;
	char program[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", program, sizeof(program));
	bool is_there = false;

	if (n < 0)
		return -errno;
	for (size_t i = 0; i < n_places && !is_there; i++) {
		size_t size = size_above(program, (size_t)n);
		const char *place = places[i];

		for (; strncmp(place, "../", 3) == 0; place += 3)
			size = size_above(program, size);
		free(path);
		path = message_text("%.*s/%s", (int)size, program, place);
		if (!path)
			return -ENOMEM;
		is_there = access(path, mode) == 0;
	}
	*ret_path = TAKE(path);
	return is_there ? 0 : BESIDE_NOWHERE;
}
