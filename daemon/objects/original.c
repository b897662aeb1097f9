/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/original.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/proc/claimant.h"
#include "daemon/proc/mappedfile.h"
#include "daemon/proc/vdso.h"
#include "record/record.h"
#include "util/mapname.h"

static int64_t in_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static struct original from_stat(const struct stat *st)
{
	return (struct original){
		.found = true,
		.uid = st->st_uid,
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

static struct mappedfile claim_of(const struct record_mmap2 *mmap)
{
	return (struct mappedfile){
		.start = mmap->addr,
		.end = mmap->addr + mmap->len,
		.offset = mmap->pgoff,
		.path = mmap->name,
		.build_id = mmap->build_id,
		.dev = makedev(mmap->maj, mmap->min),
		.ino = mmap->ino,
	};
}

struct original original_look(const struct record_mmap2 *mmap)
{
	_cleanup_(claimant_deinit) struct claimant by = { .pid_fd = -1 };
	const struct mappedfile file = claim_of(mmap);
	struct stat st;

	if (mapname_is_vdso(mmap->name))
		return (struct original){ .found = true };
	/* The writer of the record learns nothing from this. */
	by = claimant_find(NULL, mmap->pid);
	return mappedfile_stat(&by, &file, &st) == 0 ? from_stat(&st) : (struct original){};
}

static bool is_elf(int fd)
{
	uint8_t magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static int open_by(int (*open_file)(const struct claimant *by, const struct mappedfile *file,
				    int *ret_fd),
		   const struct claims *claims, const struct record_mmap2 *mmap, int *ret_fd,
		   struct original *ret_original)
{
	_cleanup_(claimant_deinit) struct claimant by = { .pid_fd = -1 };
	const struct mappedfile file = claim_of(mmap);
	_cleanup_(fd_closep) int fd = -1;
	struct stat st;
	int r;

	if (mapname_is_vdso(mmap->name)) {
		*ret_original = (struct original){ .found = true };
		return vdso_open(ret_fd);
	}
	by = claimant_find(claims, mmap->pid);
	r = open_file(&by, &file, &fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_elf(fd))
		return -ENOEXEC;
	*ret_original = from_stat(&st);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int original_open(const struct claims *claims, const struct record_mmap2 *mmap, int *ret_fd,
		  struct original *ret_original)
{
	return open_by(mappedfile_open, claims, mmap, ret_fd, ret_original);
}

int original_open_verified(const struct claims *claims, const struct record_mmap2 *mmap,
			   int *ret_fd, struct original *ret_original)
{
	return open_by(mappedfile_open_verified, claims, mmap, ret_fd, ret_original);
}
