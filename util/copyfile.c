/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/copyfile.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/dataspan.h"
#include "util/effort.h"

/* Bytes that are copied between two checks of the effort. */
#define STEP ((size_t)16 << 20)

#define ZERO_BLOCK ((size_t)64 << 10) /* bytes that are looked at for zeros */

static size_t step_size(off_t at, off_t end)
{
	return (uint64_t)(end - at) < STEP ? (size_t)(end - at) : STEP;
}

/* Copy the bytes from @at to @end, as far as they exist: the file may become shorter meanwhile. */
static int copy_range(int from, int to, off_t at, off_t end, const struct effort *effort)
{
	off_t out = at;
	ssize_t n = 0;
	int r = 0;

	while (at < end && (r = effort_check(effort)) == 0 &&
	       (n = copy_file_range(from, &at, to, &out, step_size(at, end), 0)) > 0)
		;
	if (r < 0 || n >= 0)
		return r;
	if (lseek(to, at, SEEK_SET) < 0)
		return -errno;
	while (at < end && (r = effort_check(effort)) == 0 &&
	       (n = sendfile(to, from, &at, step_size(at, end))) > 0)
		;
	return r < 0 ? r : n < 0 ? -errno : 0;
}

/* Copy the data between the holes. Return: 0; -EFBIG; -EINVAL if the file system cannot say where
 * they are, and nothing was copied; or another negative errno. */
static int copy_sparse(int from, int to, const struct effort *effort)
{
	const uint64_t max = effort_size(effort);
	struct dataspan span;
	off_t end;
	int r;

	for (uint64_t at = 0; (r = dataspan_next(from, at, UINT64_MAX, &span)) > 0; at = span.end) {
		if (span.end > max)
			return -EFBIG;
		r = copy_range(from, to, (off_t)span.start, (off_t)span.end, effort);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	end = lseek(from, 0, SEEK_END);
	if (end < 0)
		return -errno;
	if ((uint64_t)end > max)
		return -EFBIG;
	return ftruncate(to, end) < 0 ? -errno : 0;
}

static bool has_holes(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size;
}

int copyfile_fd(int from, int to, const struct effort *effort)
{
	const uint64_t max = effort_size(effort);
	off_t at = 0;
	ssize_t n = 0;
	int r = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return (uint64_t)lseek(to, 0, SEEK_END) > max ? -EFBIG : 0;
	if (has_holes(from)) {
		r = copy_sparse(from, to, effort);
		if (r != -EINVAL)
			return r;
	}

	while ((uint64_t)at <= max && (r = effort_check(effort)) == 0 &&
	       (n = copy_file_range(from, &at, to, NULL, STEP, 0)) > 0)
		;
	if (r < 0)
		return r;
	/* Not every pair of file systems can do that. A file in /proc says that it is empty. */
	if (n == 0 && at > 0)
		return 0;

	while ((uint64_t)at <= max && (r = effort_check(effort)) == 0 &&
	       (n = sendfile(to, from, &at, STEP)) > 0)
		;
	if (r < 0)
		return r;
	if ((uint64_t)at > max)
		return -EFBIG;
	return n < 0 ? -errno : 0;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

int copyfile_first(int from, int to, uint64_t size)
{
	_cleanup_(freep) uint8_t *block = malloc(ZERO_BLOCK);
	uint64_t at = 0;

	if (!block)
		return -ENOMEM;
	while (at < size) {
		const size_t want = size - at < ZERO_BLOCK ? (size_t)(size - at) : ZERO_BLOCK;
		const ssize_t n = pread(from, block, want, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* the file became shorter */
		errno = ENOSPC;
		if (!is_zero(block, (size_t)n) && pwrite(to, block, (size_t)n, (off_t)at) != n)
			return -errno;
		at += (uint64_t)n;
	}
	return ftruncate(to, (off_t)at) < 0 ? -errno : 0;
}
