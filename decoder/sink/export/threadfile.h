/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Thread file
 *
 * A file of an output that has one for each thread. There may be thousands, so one file at
 * a time is open, and the others have what is to be written in memory.
 *
 * Bytes can be inserted into what was written: a function that was open before the trace began, or
 * before a gap, is found when something returns to it, and belongs to the beginning.
 *
 * Until it is complete, the name of a file ends with ".part".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define THREADFILE_BUFFER ((size_t)64 << 10) /* bytes that are written together */

/* What all files of an output share. @fd is -1 at first. */
struct threadfiles {
	int dir_fd;     /* the directory (decoder/util/outdir.h); borrowed */
	uint64_t *room; /* bytes that may still be written; NULL: no limit; borrowed */

	int fd;                  /* of the file that is open, or -1 */
	struct threadfile *open; /* that; borrowed */
};

struct threadfile {
	struct threadfiles *files; /* borrowed */
	char *name;                /* without ".part"; owned */
	bool is_there;             /* it was created */
	VEC(uint8_t) buffer;       /* what is to be written behind @n_written */
	uint64_t n_written;
};

/* Close what is open. */
void threadfiles_deinit(struct threadfiles *files);

/* Return: how many bytes the file has. */
static inline uint64_t threadfile_size(const struct threadfile *file)
{
	return file->n_written + file->buffer.n;
}

/* Return: room for @size bytes, which count as written, until the next call; NULL: there is none.
 */
static inline uint8_t *threadfile_add(struct threadfile *file, size_t size)
{
	uint8_t *p;

	if (file->buffer.n_capacity - file->buffer.n < size && vec_reserve(&file->buffer, size) < 0)
		return NULL;
	p = file->buffer.items + file->buffer.n;
	file->buffer.n += size;
	return p;
}

/* Write what is in memory. Return: 0 or negative errno, as do the functions below. */
_must_check_ int threadfile_flush(struct threadfile *file);

/* The same, and give the memory back. */
_must_check_ int threadfile_leave_memory(struct threadfile *file);

/* The same as threadfile_flush(), if there is much. */
_must_check_ static inline int threadfile_flush_if_full(struct threadfile *file)
{
	return file->buffer.n < THREADFILE_BUFFER ? 0 : threadfile_flush(file);
}

/* Insert @n bytes at @offset: what stands there is behind them then. */
_must_check_ int threadfile_insert(struct threadfile *file, uint64_t offset, const uint8_t *bytes,
				   size_t n);

/* Write @n bytes over those at @offset, which were flushed. */
_must_check_ int threadfile_patch(struct threadfile *file, uint64_t offset, const uint8_t *bytes,
				  size_t n);

/* The file is complete: write it out, and give it its name. */
_must_check_ int threadfile_finish(struct threadfile *file);

/* @file may be zero. */
void threadfile_deinit(struct threadfile *file);
