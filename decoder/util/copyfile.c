/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/copyfile.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#define STEP ((size_t)64 << 20)

int copyfile_fd(int from, int to)
{
	off_t at = 0;
	ssize_t n;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;

	while ((n = copy_file_range(from, &at, to, NULL, STEP, 0)) > 0)
		;
	/* Not every pair of file systems can do that. A file in /proc says that it is empty. */
	if (n == 0 && at > 0)
		return 0;

	while ((n = sendfile(to, from, &at, STEP)) > 0)
		;
	return n < 0 ? -errno : 0;
}
