/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Return: the descriptor that @path names, or -1. */
static int descriptor_of(const char *path)
{
	static const char *const directories[] = { "/dev/fd/", "/proc/self/fd/" };

	if (!path)
		return -1;
	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0)
		return STDIN_FILENO;
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		const size_t size = strlen(directories[i]);
		unsigned long n;

		if (strncmp(path, directories[i], size) != 0 || path[size] < '0' ||
		    path[size] > '9')
			continue;
		n = strtoul(path + size, NULL, 10);
		return n < INT_MAX ? (int)n : -1;
	}
	return -1;
}

/*
 * Return: the lowest descriptor that is @fd or higher and that one of the paths names; INT_MAX if
 *         there is none.
 */
static int next_named(const char *const *paths, size_t n, int fd)
{
	int next = INT_MAX;

	for (size_t i = 0; i < n; i++) {
		const int named = descriptor_of(paths[i]);

		if (named >= fd && named < next)
			next = named;
	}
	return next;
}

static int close_stdin(void)
{
	_cleanup_(fd_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* Where there is no /dev, there is no terminal, either. */
	if (null < 0) {
		(void)close(STDIN_FILENO);
		return 0;
	}
	if (null == STDIN_FILENO) {
		null = -1;
		return 0;
	}
	return dup2(null, STDIN_FILENO) < 0 ? -errno : 0;
}

int inherit_only(const char *const *paths, size_t n)
{
	int r = 0;

	if (next_named(paths, n, STDIN_FILENO) != STDIN_FILENO)
		r = close_stdin();
	for (int fd = STDERR_FILENO + 1; r == 0;) {
		const int named = next_named(paths, n, fd);

		if (named > fd && close_range((unsigned)fd, (unsigned)named - 1, 0) < 0)
			r = -errno;
		if (named == INT_MAX)
			break;
		fd = named + 1;
	}
	/* Linux before 5.9 has no close_range(2). */
	return r == -ENOSYS ? 0 : r;
}
