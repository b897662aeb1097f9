/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/mapfile.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/dataspan.h"
#include "util/fileparts.h"
#include "util/regular.h"

/* Read the bytes of @fd between its holes to @bytes, where zeros are. */
static int read_data(int fd, uint8_t *bytes, uint64_t size)
{
	struct dataspan span;
	int r;

	for (uint64_t at = 0; (r = dataspan_next(fd, at, size, &span)) > 0; at = span.end) {
		r = fileparts_read_fd(fd, span.start, bytes + span.start,
				      (size_t)(span.end - span.start));
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	return lseek(fd, 0, SEEK_END) < (off_t)size ? -ESTALE : 0;
}

int mapfile_read(struct mapfile *mapfile, int dir_fd, const char *path)
{
	_cleanup_(fd_closep) int fd = regular_open(dir_fd, path, 0);
	_cleanup_(mapfile_deinit) struct mapfile m = {};
	struct stat st;
	void *p;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > 0) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return -errno;
		m = (struct mapfile){ .bytes = p, .size = (size_t)st.st_size };
		r = read_data(fd, p, m.size);
		if (r < 0)
			return r;
	}
	*mapfile = m;
	m = (struct mapfile){};
	return 0;
}

void mapfile_deinit(struct mapfile *mapfile)
{
	if (mapfile->bytes)
		(void)munmap((void *)(uintptr_t)mapfile->bytes, mapfile->size);
	*mapfile = (struct mapfile){};
}
