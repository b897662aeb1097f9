/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace out
 *
 * The files of a drmemtrace directory. There is one file for each thread, so there may be thousands
 * of files; the number of descriptors and buffers is bounded. A file that was closed to make room
 * for another is opened again when it is written to.
 *
 * A file is a zip archive of members whose directory is written last, or plain. Until it is
 * finished, its name ends with ".part": what a full disk or a signal left unfinished is never taken
 * for a trace.
 *
 * Records that were added may have to be changed later. In an archive this is possible for those
 * that are watched: they are in pieces of their own, which are not compressed, and nothing behind
 * them refers to them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/zip.h"
#include "util/map.h"
#include "util/vec.h"

#define MEMTRACE_OUT_OPEN_MAX  256         /* files open at once, in one pool */
#define MEMTRACE_OUT_BUFFER    (64 * 1024) /* bytes that can be added together */
#define MEMTRACE_OUT_WATCH_MAX 64          /* records that are watched in a file */
#define MEMTRACE_OUT_WATCHED   12          /* bytes of a record */

struct memtrace_out;
struct memtrace_packing;
struct ptd_threads;

struct memtrace_out_pool {
	struct map n_made; /* hash of a stem → how many files were made with it */
	int dir_fd;        /* the directory of the files (decoder/util/outdir.h); borrowed */
	uint64_t *room;    /* bytes that may still be written; NULL: no limit; borrowed */
	bool is_plain;     /* the files are, and have no members */
	struct memtrace_packing *packing;
	struct memtrace_out *newest;
	struct memtrace_out *oldest;
	size_t n_open;
};

/* A record that may be changed. */
struct memtrace_watch {
	uint64_t offset; /* before it is compressed */
	uint64_t at;     /* in the file; 0: it is not there yet */
	uint8_t bytes[MEMTRACE_OUT_WATCHED];
	size_t member;
	uint64_t offset_in_member; /* before it is compressed */
};

struct memtrace_out {
	struct memtrace_out_pool *pool; /* borrowed */
	char *name;         /* without ".part", in the pool's directory; NULL until it is created */
	int fd;             /* -1 while closed */
	uint8_t *buffer;    /* with room for a piece; NULL while closed */
	size_t n;           /* bytes in the buffer */
	uint64_t n_written; /* bytes before those, which were handed on to be compressed */
	struct memtrace_out *newer;
	struct memtrace_out *older;

	uint64_t size;       /* of the file itself */
	size_t n_dictionary; /* bytes before the buffer's to which those can refer */
	size_t n_packing;    /* pieces in the ring */
	bool is_in_member;   /* the last member goes on */
	VEC(struct zip_member) members;
	VEC(struct memtrace_watch) watches; /* in the order of their offsets */
};

/*
 * Make a pool without files, which will be plain or archives. @dir_fd is borrowed; @room and
 * @threads are as in struct sink_config.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_pool_init(struct memtrace_out_pool *pool, int dir_fd, uint64_t *room,
					bool is_plain, struct ptd_threads *threads);

/* Wait until all that was added to finished files is written. Return: 0, or negative errno. */
_must_check_ int memtrace_out_pool_flush(struct memtrace_out_pool *pool);

/* The pool's files must have been closed or deinitialised before. */
void memtrace_out_pool_deinit(struct memtrace_out_pool *pool);

/*
 * Create "<stem>.<4 digits>.trace", with ".zip" if it is an archive, with the first number that is
 * free, and open it.
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
 * @ret_room and adds their number to out->n. They are whole records.
 *
 * Return: 0, or negative errno, which may be that of an earlier write, also to another file.
 */
_must_check_ int memtrace_out_room(struct memtrace_out *out, size_t size, uint8_t **ret_room);

/* Return: the offset that the next byte will have, before it is compressed. */
static inline uint64_t memtrace_out_offset(const struct memtrace_out *out)
{
	return out->n_written + out->n;
}

/* The next bytes are in another member of the archive. Return: 0, or negative errno. */
_must_check_ int memtrace_out_end_member(struct memtrace_out *out);

/*
 * The record at @offset, which was added last, may have to be changed. Of many such records the
 * oldest are forgotten.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_watch(struct memtrace_out *out, uint64_t offset);

/* The record at @offset and those behind it stay as they are. Return: 0, or negative errno. */
_must_check_ int memtrace_out_settle(struct memtrace_out *out, uint64_t offset);

/*
 * Change the record at @offset, which is watched, to @bytes.
 *
 * Return: 0; -ENOENT if it was settled or forgotten, and is compressed; or another negative errno.
 */
_must_check_ int memtrace_out_patch(struct memtrace_out *out, uint64_t offset,
				    const uint8_t bytes[static MEMTRACE_OUT_WATCHED]);

/*
 * Write what is in the buffer, and give the file its name. All is done when
 * memtrace_out_pool_flush() has returned.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_out_finish(struct memtrace_out *out);

/* Make a whole file at once. @name is without ".part". Return: 0, or negative errno. */
_must_check_ int memtrace_out_whole(struct memtrace_out_pool *pool, const char *name,
				    const uint8_t *bytes, size_t size);

/*
 * Close the file, without what is still in its buffer, and free what @out owns. @out may be zero:
 * it was never created.
 */
void memtrace_out_deinit(struct memtrace_out *out);
