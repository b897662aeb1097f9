/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/fullwrite.h"

#include <errno.h>
#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

/* @n is what write(2) returned. Return: the number of bytes written, or negative errno. */
static ssize_t progress(int fd, ssize_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (n > 0)
		return n;
	if (n == 0)
		return -EIO; /* without this, the loop might never end */
	if (errno == EAGAIN)
		(void)poll(&p, 1, -1);
	else if (errno != EINTR)
		return -errno;
	return 0;
}

int fullwrite(int fd, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	for (size_t done = 0; done < size;) {
		const ssize_t n = progress(fd, write(fd, from + done, size - done));

		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return 0;
}

int fullwrite_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
	const uint8_t *from = bytes;

	for (size_t done = 0; done < size;) {
		const ssize_t n =
		    progress(fd, pwrite(fd, from + done, size - done, (off_t)(offset + done)));

		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return 0;
}

ssize_t fullread_at(int fd, void *ret_bytes, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size && offset <= INT64_MAX - size) {
		const ssize_t n =
		    pread(fd, (uint8_t *)ret_bytes + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
}
