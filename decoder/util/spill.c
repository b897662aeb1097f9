/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "util/fullwrite.h"

#define DIRECTORY_DEFAULT "/var/tmp"
#define COPY_SIZE         (size_t)(1 << 16)

/*
 * The prepared files of the process, which prepares them only if it has one thread. In each, a
 * spill begins where the one before it ended.
 */
static struct prepared {
	int fd;
	bool in_use;
	uint64_t end;
} prepared[SPILL_PREPARED];
static bool is_prepared;

const char *spill_directory(void)
{
	return secure_getenv("TMPDIR") ?: DIRECTORY_DEFAULT;
}

static int open_temporary(void)
{
	return open(spill_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

void spill_prepare(void)
{
	for (size_t i = 0; i < SPILL_PREPARED && !is_prepared; i++)
		prepared[i].fd = open_temporary();
	is_prepared = true;
}

/* Return: whether there was a prepared file, which @spill has then. */
static bool use_prepared_file(struct spill *spill)
{
	for (size_t i = 0; is_prepared && i < SPILL_PREPARED; i++) {
		struct prepared *p = &prepared[i];

		if (p->in_use || p->fd < 0)
			continue;
		p->in_use = true;
		*spill = (struct spill){ .spills = spill->spills,
					 .is_open = true,
					 .is_prepared = true,
					 .prepared = i,
					 .fd = p->fd,
					 .start = p->end };
		return true;
	}
	return false;
}

static int open_file(struct spill *spill)
{
	if (use_prepared_file(spill))
		return 0;
	spill->fd = open_temporary();
	if (spill->fd < 0)
		spill->fd = memfd_create("ptdecode", MFD_CLOEXEC);
	if (spill->fd < 0)
		return -errno;
	spill->is_open = true;
	return 0;
}

void spill_deinit(struct spill *spill)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (spill->is_prepared) {
		struct prepared *p = &prepared[spill->prepared];

		p->in_use = false;
		p->end = (spill->start + spill->size + page - 1) / page * page;
	} else if (spill->is_open) {
		(void)fd_close(spill->fd);
	}
	*spill = (struct spill){ .spills = spill->spills };
}

static int fail(struct spill *spill, int r)
{
	if (spill->spills)
		spill->spills->failure = r;
	return r;
}

int spill_write(struct spill *spill, const void *bytes, size_t size)
{
	int r;

	if (spill->spills && size > spill->spills->room)
		return fail(spill, -EFBIG);
	if (!spill->is_open) {
		r = open_file(spill);
		if (r < 0)
			return r;
	}
	r = fullwrite_at(spill->fd, bytes, size, spill->start + spill->size);
	if (r < 0)
		return fail(spill, r);
	spill->size += size;
	if (spill->spills)
		spill->spills->room -= size;
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

struct spillfile spill_finish(struct spill *spill)
{
	struct spillfile file = { .fd = -1 };

	if (spill->size > 0) {
		file = (struct spillfile){ .fd = spill->fd,
					   .is_owned = !spill->is_prepared,
					   .offset = spill->start,
					   .size = spill->size };
		spill->is_open = spill->is_prepared;
	}
	spill_deinit(spill);
	return file;
}

int spill_share(struct spill *spill, void **ret_bytes)
{
	void *p = mmap(NULL, spill->size, PROT_READ | PROT_WRITE, MAP_SHARED, spill->fd,
		       (off_t)spill->start);

	if (p == MAP_FAILED)
		return -errno;
	*ret_bytes = p;
	return 0;
}
