/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/threadfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decoder/util/outdir.h"
#include "util/fullwrite.h"
#include "util/message.h"

#define PART ".part"

void threadfiles_deinit(struct threadfiles *files)
{
	files->fd = fd_close(files->fd);
	files->open = NULL;
}

/* Close the file that is open. Some file systems report only here that the disk is full. */
static int close_open(struct threadfiles *files)
{
	const int fd = files->fd;

	files->fd = -1;
	files->open = NULL;
	return fd >= 0 && close(fd) < 0 ? -errno : 0;
}

/* Make sure that it is the file that is open. */
static int use(struct threadfile *file)
{
	struct threadfiles *files = file->files;
	_cleanup_(freep) char *part = NULL;
	int r;

	if (files->open == file)
		return 0;
	r = close_open(files);
	part = message_text("%s" PART, file->name);
	if (r == 0)
		r = !part ? -ENOMEM : outdir_open(files->dir_fd, part, !file->is_there);
	if (r < 0)
		return r;
	files->fd = r;
	files->open = file;
	file->is_there = true;
	return 0;
}

static int read_at(int fd, uint8_t *bytes, size_t size, uint64_t offset)
{
	const ssize_t n = fullread_at(fd, bytes, size, offset);

	if (n < 0)
		return (int)n;
	return (size_t)n < size ? -EIO : 0;
}

int threadfile_flush(struct threadfile *file)
{
	uint64_t *room = file->files->room;
	const size_t n = file->buffer.n;
	int r;

	if (n == 0)
		return 0;
	if (room && n > *room)
		return -EFBIG;
	r = use(file);
	if (r == 0)
		r = fullwrite_at(file->files->fd, file->buffer.items, n, file->n_written);
	if (r < 0)
		return r;
	if (room)
		*room -= n;
	file->n_written += n;
	file->buffer.n = 0;
	return 0;
}

/* Move what is in the file from @offset on back by @n bytes, from the end on. */
static int move_back(struct threadfile *file, uint64_t offset, size_t n)
{
	uint64_t end = file->n_written;
	uint8_t *piece = malloc(THREADFILE_BUFFER);
	int r = piece ? use(file) : -ENOMEM;

	while (r == 0 && end > offset) {
		const uint64_t left = end - offset;
		const size_t size = left < THREADFILE_BUFFER ? (size_t)left : THREADFILE_BUFFER;

		end -= size;
		r = read_at(file->files->fd, piece, size, end);
		if (r == 0)
			r = fullwrite_at(file->files->fd, piece, size, end + n);
	}
	free(piece);
	return r;
}

int threadfile_insert(struct threadfile *file, uint64_t offset, const uint8_t *bytes, size_t n)
{
	uint8_t *at;
	int r;

	if (offset < file->n_written) {
		r = threadfile_flush(file);
		if (r == 0 && file->files->room && n > *file->files->room)
			r = -EFBIG;
		if (r == 0)
			r = move_back(file, offset, n);
		if (r == 0)
			r = fullwrite_at(file->files->fd, bytes, n, offset);
		if (r < 0)
			return r;
		if (file->files->room)
			*file->files->room -= n;
		file->n_written += n;
		return 0;
	}
	r = vec_reserve(&file->buffer, n);
	if (r < 0)
		return r;
	at = file->buffer.items + (offset - file->n_written);
	memmove(at + n, at, file->n_written + file->buffer.n - offset);
	memcpy(at, bytes, n);
	file->buffer.n += n;
	return 0;
}

int threadfile_leave_memory(struct threadfile *file)
{
	const int r = threadfile_flush(file);

	vec_deinit(&file->buffer);
	return r;
}

int threadfile_patch(struct threadfile *file, uint64_t offset, const uint8_t *bytes, size_t n)
{
	const int r = use(file);

	return r < 0 ? r : fullwrite_at(file->files->fd, bytes, n, offset);
}

int threadfile_finish(struct threadfile *file)
{
	_cleanup_(freep) char *part = message_text("%s" PART, file->name);
	int r = part ? threadfile_flush(file) : -ENOMEM;

	if (r == 0)
		r = use(file);
	if (r == 0)
		r = close_open(file->files);
	return r < 0 ? r : outdir_rename(file->files->dir_fd, part, file->name);
}

void threadfile_deinit(struct threadfile *file)
{
	if (file->files && file->files->open == file)
		threadfiles_deinit(file->files);
	free(file->name);
	vec_deinit(&file->buffer);
	*file = (struct threadfile){};
}
