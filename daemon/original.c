/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/original.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/mappedfile.h"
#include "daemon/record.h"
#include "daemon/vdso.h"
#include "decoder/util/mapname.h"

static int64_t in_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static struct original from_stat(const struct stat *st)
{
	return (struct original){
		.found = true,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = in_ns(&st->st_mtim),
		.ctime_ns = in_ns(&st->st_ctim),
	};
}

bool original_equal(const struct original *a, const struct original *b)
{
	return a->found && b->found && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* Return: -1 if the process is gone. */
static int open_process(uint32_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static struct mappedfile claim_of(const struct record_mmap2 *mmap)
{
	return (struct mappedfile){
		.start = mmap->addr,
		.end = mmap->addr + mmap->len,
		.path = mmap->name,
		.build_id = mmap->build_id,
		.ino = mmap->ino,
	};
}

struct original original_look(const struct record_mmap2 *mmap)
{
	const struct mappedfile file = claim_of(mmap);
	_cleanup_(fd_closep) int pid_fd = -1;
	struct stat st;

	if (mapname_is_vdso(mmap->name))
		return (struct original){ .found = true };
	pid_fd = open_process(mmap->pid);
	return mappedfile_stat(pid_fd, &file, &st) == 0 ? from_stat(&st) : (struct original){};
}

static bool is_elf(int fd)
{
	uint8_t magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

int original_open(const struct record_mmap2 *mmap, int *ret_fd, struct original *ret_original)
{
	const struct mappedfile file = claim_of(mmap);
	_cleanup_(fd_closep) int pid_fd = -1, fd = -1;
	struct stat st;
	int r;

	if (mapname_is_vdso(mmap->name)) {
		*ret_original = (struct original){ .found = true };
		return vdso_open(ret_fd);
	}
	pid_fd = open_process(mmap->pid);
	r = mappedfile_open(pid_fd, &file, &fd, NULL);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* A record may also name a file that whoever wrote it may not read, but we may. */
	if (!is_elf(fd))
		return -ENOEXEC;
	*ret_original = from_stat(&st);
	*ret_fd = fd;
	fd = -1;
	return 0;
}
