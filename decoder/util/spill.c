/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define DIRECTORY_DEFAULT "/var/tmp"
#define COPY_SIZE         (size_t)(1 << 16)

/* Of the process; each spill begins where the one before it ended. */
static struct {
	int fd;
	bool in_use;
	uint64_t end;
} prepared = { .fd = -1 };

static int open_temporary(void)
{
	const char *directory = secure_getenv("TMPDIR");

	return open(directory ?: DIRECTORY_DEFAULT, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

void spill_prepare(void)
{
	if (prepared.fd < 0)
		prepared.fd = open_temporary();
}

static int open_file(struct spill *spill)
{
	if (prepared.fd >= 0 && !prepared.in_use) {
		if (lseek(prepared.fd, (off_t)prepared.end, SEEK_SET) < 0)
			return -errno;
		prepared.in_use = true;
		spill->prepared = true;
		spill->fd = prepared.fd;
		spill->start = prepared.end;
		return 0;
	}
	spill->fd = open_temporary();
	if (spill->fd < 0)
		spill->fd = memfd_create("ptdecode", MFD_CLOEXEC);
	return spill->fd < 0 ? -errno : 0;
}

void spill_deinit(struct spill *spill)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (spill->prepared) {
		prepared.in_use = false;
		prepared.end = (spill->start + spill->size + page - 1) / page * page;
	} else {
		(void)fd_close(spill->fd);
	}
	*spill = (struct spill)SPILL_INIT;
}

int spill_write(struct spill *spill, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	int r;

	if (spill->fd < 0) {
		r = open_file(spill);
		if (r < 0)
			return r;
	}
	while (size > 0) {
		const ssize_t n = write(spill->fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		from += n;
		size -= (size_t)n;
		spill->size += (uint64_t)n;
	}
	return 0;
}

int spill_copy(struct spill *spill, int fd)
{
	_cleanup_(freep) uint8_t *buffer = malloc(COPY_SIZE);
	int r;

	if (!buffer)
		return -ENOMEM;
	for (;;) {
		const ssize_t n = read(fd, buffer, COPY_SIZE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		r = spill_write(spill, buffer, (size_t)n);
		if (r < 0)
			return r;
	}
}

int spill_finish(struct spill *spill, struct mapfile *ret_map)
{
	int r = 0;

	if (spill->size == 0)
		*ret_map = (struct mapfile){};
	else
		r = mapfile_init_part(ret_map, spill->fd, spill->start, spill->size);
	spill_deinit(spill);
	return r;
}
