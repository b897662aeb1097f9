/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace out
 *
 * The files of a drmemtrace directory. There is one file for each thread, so there may be thousands
 * of files; the number of descriptors and buffers is bounded. A file that was closed to make room
 * for another is opened again when it is written to.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define MEMTRACE_OUT_OPEN_MAX 256         /* files open at once, in one pool */
#define MEMTRACE_OUT_BUFFER   (64 * 1024) /* bytes of a file that are collected for one write */

struct memtrace_out;

struct memtrace_out_pool {
	int dir_fd;     /* the directory of the files (util/outdir.h); borrowed */
	uint64_t *room; /* bytes that may still be written; NULL: no limit; borrowed */
	struct memtrace_out *newest;
	struct memtrace_out *oldest;
	size_t n_open;
};

struct memtrace_out {
	struct memtrace_out_pool *pool; /* borrowed */
	char *name;         /* in the pool's directory; NULL until the file is created */
	int fd;             /* -1 while closed */
	uint8_t *buffer;    /* MEMTRACE_OUT_BUFFER bytes; NULL while closed */
	size_t n;           /* bytes in the buffer */
	uint64_t n_written; /* bytes that the file itself has */
	struct memtrace_out *newer;
	struct memtrace_out *older;
};

/* Make a pool without files. @dir_fd is borrowed; @room is as in struct ptd_sink_config. */
void memtrace_out_pool_init(struct memtrace_out_pool *pool, int dir_fd, uint64_t *room);

/* The pool's files must have been closed or deinitialised before. */
void memtrace_out_pool_deinit(struct memtrace_out_pool *pool);

/*
 * Create "<stem>.<4 digits>.trace", with the first number that is free, and open it.
 *
 * Return: 0; -EEXIST if all numbers are taken; or negative errno.
 */
_must_check_ int memtrace_out_create(struct memtrace_out *out, struct memtrace_out_pool *pool,
				     const char *stem);

/*
 * Make sure that the file is open, and that of all open files it is the last that is closed to make
 * room. The caller calls this before it writes, whenever another file was used in between.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_use(struct memtrace_out *out);

/*
 * Make room for @size bytes (at most MEMTRACE_OUT_BUFFER) in the buffer. The caller puts bytes at
 * @ret_room and adds their number to out->n. Bytes that were added together are never split between
 * two writes.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_room(struct memtrace_out *out, size_t size, uint8_t **ret_room);

/* Return: the offset that the next byte will have in the file. */
static inline uint64_t memtrace_out_offset(const struct memtrace_out *out)
{
	return out->n_written + out->n;
}

/*
 * Overwrite @size bytes at @offset of the file. They must lie within bytes that were added
 * together.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_patch(struct memtrace_out *out, uint64_t offset, const void *bytes,
				    size_t size);

/*
 * Write what is in the buffer, and close the file, also if writing fails.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_close(struct memtrace_out *out);

/*
 * Close the file, without what is still in its buffer, and free what @out owns. @out may be zero:
 * it was never created.
 */
void memtrace_out_deinit(struct memtrace_out *out);
