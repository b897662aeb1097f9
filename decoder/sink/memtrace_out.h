/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace out
 *
 * The files of a drmemtrace directory: one for each thread, of which there may be thousands, over a
 * bounded number of descriptors and buffers. A file that was closed to make room for another is
 * opened again when it is written to.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define MEMTRACE_OUT_OPEN_MAX 256         /* files open at once, in one pool */
#define MEMTRACE_OUT_BUFFER   (64 * 1024) /* bytes that are collected before a write */

struct memtrace_out;

struct memtrace_out_pool {
	int dir_fd;     /* where the files are (util/outdir.h); borrowed */
	uint64_t *room; /* bytes that may be written; or NULL; borrowed */
	struct memtrace_out *newest;
	struct memtrace_out *oldest;
	size_t n_open;
};

struct memtrace_out {
	struct memtrace_out_pool *pool; /* borrowed */
	char *name;                     /* in the pool's directory; NULL until it is created */
	int fd;                         /* -1 while closed */
	uint8_t *buffer;                /* MEMTRACE_OUT_BUFFER bytes; NULL while closed */
	size_t n;                       /* bytes in the buffer */
	uint64_t n_written;             /* bytes in the file */
	struct memtrace_out *newer;
	struct memtrace_out *older;
};

/* @dir_fd is borrowed; @room is as in struct ptd_sink_config. */
void memtrace_out_pool_init(struct memtrace_out_pool *pool, int dir_fd, uint64_t *room);

/* All its files are closed or deinitialised by then. */
void memtrace_out_pool_deinit(struct memtrace_out_pool *pool);

/*
 * Create "<stem>.<4 digits>.trace", with the first number that is free, and open it.
 *
 * Return: 0; -EEXIST if all numbers are taken; or negative errno.
 */
_must_check_ int memtrace_out_create(struct memtrace_out *out, struct memtrace_out_pool *pool,
				     const char *stem);

/*
 * Make sure that the file is open and is the last to be closed for want of room. To be called
 * before anything is written, whenever another file was used in between.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_use(struct memtrace_out *out);

/*
 * Make room for @size bytes, at most MEMTRACE_OUT_BUFFER. The caller writes them to @ret_room and
 * adds their number to out->n. Nothing that was added in one go is ever split between two writes.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_room(struct memtrace_out *out, size_t size, uint8_t **ret_room);

/* Return: the offset in the file of the next byte. */
static inline uint64_t memtrace_out_offset(const struct memtrace_out *out)
{
	return out->n_written + out->n;
}

/*
 * Overwrite @size bytes at @offset, which lie within one piece that was added earlier.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_patch(struct memtrace_out *out, uint64_t offset, const void *bytes,
				    size_t size);

/* Write what is left and close. Return: 0, or negative errno; it is closed in any case. */
_must_check_ int memtrace_out_close(struct memtrace_out *out);

/* Drop it as it is. A zeroed one that was never created is fine. */
void memtrace_out_deinit(struct memtrace_out *out);
