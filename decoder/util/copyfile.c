/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/copyfile.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#define STEP ((size_t)64 << 20)

int copyfile_fd(int from, int to, uint64_t max)
{
	off_t at = 0;
	ssize_t n = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return (uint64_t)lseek(to, 0, SEEK_END) > max ? -EFBIG : 0;

	while ((uint64_t)at <= max && (n = copy_file_range(from, &at, to, NULL, STEP, 0)) > 0)
		;
	/* Not every pair of file systems can do that. A file in /proc says that it is empty. */
	if (n == 0 && at > 0)
		return 0;

	while ((uint64_t)at <= max && (n = sendfile(to, from, &at, STEP)) > 0)
		;
	if ((uint64_t)at > max)
		return -EFBIG;
	return n < 0 ? -errno : 0;
}
