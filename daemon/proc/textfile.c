/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

static int open_stream(int dir_fd, const char *name, int flags, const char *mode, FILE **ret_file)
{
	const int fd = openat(dir_fd, name, flags | O_CLOEXEC, 0640);

	if (fd < 0)
		return -errno;
	*ret_file = fdopen(fd, mode);
	if (!*ret_file) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	return 0;
}

int textfile_open(int dir_fd, const char *name, FILE **ret_file)
{
	return open_stream(dir_fd, name, O_RDONLY, "r", ret_file);
}

int textfile_create(int dir_fd, const char *name, FILE **ret_file)
{
	return open_stream(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, "w", ret_file);
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
