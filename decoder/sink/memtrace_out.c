/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace_out.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/outdir.h"

#define NUMBER_MAX 9999

void memtrace_out_pool_init(struct memtrace_out_pool *pool, int dir_fd, uint64_t *room)
{
	*pool = (struct memtrace_out_pool){ .dir_fd = dir_fd, .room = room };
}

void memtrace_out_pool_deinit(struct memtrace_out_pool *pool)
{
	assert(!pool->newest);
	*pool = (struct memtrace_out_pool){ .dir_fd = -1 };
}

static void link_newest(struct memtrace_out *out)
{
	struct memtrace_out_pool *pool = out->pool;

	out->newer = NULL;
	out->older = pool->newest;
	if (pool->newest)
		pool->newest->newer = out;
	else
		pool->oldest = out;
	pool->newest = out;
}

static void unlink_out(struct memtrace_out *out)
{
	struct memtrace_out_pool *pool = out->pool;

	if (out->newer)
		out->newer->older = out->older;
	else
		pool->newest = out->older;
	if (out->older)
		out->older->newer = out->newer;
	else
		pool->oldest = out->newer;
}

static int write_at(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
	while (size > 0) {
		const ssize_t n = pwrite(fd, bytes, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		bytes += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static int flush(struct memtrace_out *out)
{
	uint64_t *room = out->pool->room;
	int r;

	/* The file must not end in the middle of the records of an instruction. */
	if (room && out->n > *room)
		return -EFBIG;
	r = write_at(out->fd, out->buffer, out->n, out->n_written);
	if (r < 0)
		return r;
	if (room)
		*room -= out->n;
	out->n_written += out->n;
	out->n = 0;
	return 0;
}

/* Free the buffer, and close the descriptor. */
static int release(struct memtrace_out *out)
{
	const int fd = out->fd;

	free(out->buffer);
	out->buffer = NULL;
	out->n = 0;
	out->fd = -1;
	unlink_out(out);
	out->pool->n_open--;
	return close(fd) < 0 ? -errno : 0;
}

/* @fd belongs to @out afterwards; on failure it is closed. */
static int adopt(struct memtrace_out *out, int fd)
{
	out->buffer = malloc(MEMTRACE_OUT_BUFFER);
	if (!out->buffer) {
		(void)close(fd);
		return -ENOMEM;
	}
	out->fd = fd;
	out->pool->n_open++;
	link_newest(out);
	return 0;
}

/* Open the file, closing others for as long as there are too many. Return: its fd, or -errno. */
static int open_file(struct memtrace_out_pool *pool, const char *name, bool is_new)
{
	for (;;) {
		int r = -EMFILE;

		if (pool->n_open < MEMTRACE_OUT_OPEN_MAX) {
			r = outdir_open(pool->dir_fd, name, is_new);
			if (r >= 0)
				return r;
		}
		if ((r != -EMFILE && r != -ENFILE) || !pool->oldest)
			return r;
		r = memtrace_out_close(pool->oldest);
		if (r < 0)
			return r;
	}
}

int memtrace_out_create(struct memtrace_out *out, struct memtrace_out_pool *pool, const char *stem)
{
	int r;

	for (unsigned int i = 0; i <= NUMBER_MAX; i++) {
		_cleanup_(freep) char *name = NULL;
		int fd;

		if (asprintf(&name, "%s.%04u.trace", stem, i) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		fd = open_file(pool, name, true);
		if (fd == -EEXIST)
			continue;
		if (fd < 0)
			return fd;

		*out = (struct memtrace_out){ .pool = pool, .fd = -1 };
		r = adopt(out, fd);
		if (r < 0)
			return r;
		out->name = TAKE(name);
		return 0;
	}
	return -EEXIST;
}

int memtrace_out_use(struct memtrace_out *out)
{
	int fd;

	if (out->fd >= 0) {
		if (out->pool->newest != out) {
			unlink_out(out);
			link_newest(out);
		}
		return 0;
	}

	fd = open_file(out->pool, out->name, false);
	return fd < 0 ? fd : adopt(out, fd);
}

int memtrace_out_room(struct memtrace_out *out, size_t size, uint8_t **ret_room)
{
	assert(out->fd >= 0);
	assert(size <= MEMTRACE_OUT_BUFFER);

	if (size > MEMTRACE_OUT_BUFFER - out->n) {
		const int r = flush(out);

		if (r < 0)
			return r;
	}
	*ret_room = out->buffer + out->n;
	return 0;
}

int memtrace_out_patch(struct memtrace_out *out, uint64_t offset, const void *bytes, size_t size)
{
	assert(out->fd >= 0);
	assert(offset + size <= memtrace_out_offset(out));

	if (offset < out->n_written)
		return write_at(out->fd, bytes, size, offset);
	memcpy(out->buffer + (offset - out->n_written), bytes, size);
	return 0;
}

int memtrace_out_close(struct memtrace_out *out)
{
	int r, q;

	if (out->fd < 0)
		return 0;
	r = flush(out);
	q = release(out);
	return r < 0 ? r : q;
}

void memtrace_out_deinit(struct memtrace_out *out)
{
	if (out->pool && out->fd >= 0)
		(void)release(out);
	free(out->name);
	*out = (struct memtrace_out){ .fd = -1 };
}
