/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/mapfile.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/dataspan.h"
#include "util/fileparts.h"
#include "util/regular.h"

static int map_part(struct mapfile *mapfile, int fd, int prot, uint64_t offset, uint64_t size)
{
	void *p = NULL;

	if (size > 0) {
		p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_NORESERVE, fd, (off_t)offset);
		if (p == MAP_FAILED)
			return -errno;
	}
	*mapfile = (struct mapfile){ .bytes = p, .size = size };
	return 0;
}

static int map_fd(struct mapfile *mapfile, int fd, int prot)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	return map_part(mapfile, fd, prot, 0, (uint64_t)st.st_size);
}

static int map_path(struct mapfile *mapfile, int dir_fd, const char *path, int prot)
{
	_cleanup_(fd_closep) int fd = regular_open(dir_fd, path, 0);

	return fd < 0 ? fd : map_fd(mapfile, fd, prot);
}

int mapfile_init(struct mapfile *mapfile, int dir_fd, const char *path)
{
	return map_path(mapfile, dir_fd, path, PROT_READ);
}

/* Read the bytes of @fd between its holes to @bytes, where zeros are. */
static int read_data(int fd, uint8_t *bytes, uint64_t size)
{
	struct dataspan span;
	int r;

	for (uint64_t at = 0; (r = dataspan_next(fd, at, size, &span)) > 0; at = span.end) {
		r = fileparts_read_fd(fd, span.start, bytes + span.start,
				      (size_t)(span.end - span.start));
		if (r < 0)
			return r == -ENODATA ? -ESTALE : r;
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

int mapfile_init_fd(struct mapfile *mapfile, int fd)
{
	return map_fd(mapfile, fd, PROT_READ | PROT_WRITE);
}

int mapfile_init_part(struct mapfile *mapfile, int fd, uint64_t offset, uint64_t size)
{
	return map_part(mapfile, fd, PROT_READ | PROT_WRITE, offset, size);
}

void mapfile_deinit(struct mapfile *mapfile)
{
	if (mapfile->bytes)
		(void)munmap((void *)(uintptr_t)mapfile->bytes, mapfile->size);
	*mapfile = (struct mapfile){};
}

void mapfile_evict(const struct mapfile *mapfile, const uint8_t *bytes, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t start, end;

	if (!mapfile->bytes || bytes < mapfile->bytes || bytes > mapfile->bytes + mapfile->size ||
	    size > (size_t)(mapfile->bytes + mapfile->size - bytes))
		return;
	/* Only pages that are wholly in it. */
	start = ((size_t)(bytes - mapfile->bytes) + page - 1) / page * page;
	end = (size_t)(bytes - mapfile->bytes) + size;
	if (end < mapfile->size)
		end = end / page * page;
	if (start < end)
		(void)madvise((void *)(uintptr_t)(mapfile->bytes + start), end - start,
			      MADV_DONTNEED);
}
