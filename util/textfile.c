/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int textfile_from(int fd, const char *mode, FILE **ret_file)
{
	if (fd < 0)
		return fd;
	*ret_file = fdopen(fd, mode);
	if (!*ret_file) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	return 0;
}

int textfile_open(int dir_fd, const char *name, FILE **ret_file)
{
	const int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	return textfile_from(fd < 0 ? -errno : fd, "r", ret_file);
}

int textfile_read(int dir_fd, const char *name, char *ret_text, size_t size)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size - 1);

	ret_text[n < 0 ? 0 : n] = '\0';
	return n < 0 ? -errno : (int)n;
}

long long textfile_number(const char *path, long long fallback)
{
	_cleanup_(textfile_closep) FILE *f = fopen(path, "re");
	long long n;

	return f && fscanf(f, "%lld", &n) == 1 ? n : fallback;
}

uint64_t textfile_field(const char *path, const char *name, int base)
{
	_cleanup_(textfile_closep) FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			return strtoull(line + strlen(name), NULL, base);
	return 0;
}

int textfile_write(int fd, FILE **ret_file)
{
	const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return textfile_from(own < 0 ? -errno : own, "w", ret_file);
}

int textfile_finish(FILE **file, uint64_t *bytes)
{
	const off_t size = ftello(*file);
	const bool failed = ferror(*file) != 0;

	if (fclose(TAKE(*file)) != 0 || failed || size < 0)
		return -EIO;
	*bytes += (uint64_t)size;
	return 0;
}
