/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/vdso.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "util/mapsline.h"
#include "util/textfile.h"

static uint64_t size_at(uint64_t start)
{
	_cleanup_(textfile_closep) FILE *f = fopen("/proc/self/maps", "re");
	_cleanup_(freep) char *line = NULL;
	uint64_t size = 0;
	size_t n = 0;

	while (f && size == 0 && getline(&line, &n, f) > 0) {
		struct mapsline l;

		line[strcspn(line, "\n")] = '\0';
		if (mapsline_parse(line, &l) == 0 && l.start == start)
			size = l.end - l.start;
	}
	return size;
}

int vdso_open(int *ret_fd)
{
	const uint64_t start = getauxval(AT_SYSINFO_EHDR);
	const uint64_t size = start ? size_at(start) : 0;
	_cleanup_(fd_closep) int fd = -1;

	if (size == 0 || size > VDSO_SIZE_MAX)
		return -ENOENT;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	errno = ENOSPC;
	if (write(fd, (const void *)(uintptr_t)start, size) != (ssize_t)size)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

bool vdso_equals(const void *bytes, size_t size)
{
	const uint64_t start = getauxval(AT_SYSINFO_EHDR);

	return start && size_at(start) == size &&
	       memcmp((const void *)(uintptr_t)start, bytes, size) == 0;
}
