/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * File bytes
 *
 * The bytes of a regular file, each at one address as long as they are referred to, read when they
 * are first asked for. Only the pieces that were asked for take memory, so ten instructions of a
 * file of 100 MB cost as much as ten of a small one.
 *
 * The file is never mapped. A writer of a mapped file may cut it off, and the process that
 * looks at the missing bytes is killed (SIGBUS). Here it is a failure that is reported: bytes that
 * were read stay as they were, and no more bytes are taken from a file that was cut off, written to
 * or replaced since it was opened, because old and new bytes together may be code that never ran.
 *
 * The files of one decode share a set. It keeps a bounded number of them open; one that was closed
 * for another is opened again by its path, and must be the same file. The first failure is kept.
 *
 * Threads: filebytes_get() may be called by several threads at once, for one file and for many.
 * Pieces are read under the mutex of the set and published by an atomic store, so bytes that have
 * been read are found without a lock. Different threads may make and free different files of one
 * set. References to one file are counted by one thread at a time.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

#define FILESET_OPEN_MAX 128

struct filebytes;

struct fileset {
	pthread_mutex_t mutex;
	struct filebytes *open[FILESET_OPEN_MAX]; /* borrowed; the next one to be closed: */
	size_t next;
	_Atomic(const char *) failure; /* owned; NULL: no bytes failed to be read */
};

void fileset_init(struct fileset *set);

/* The files of the set must have been freed. */
void fileset_deinit(struct fileset *set);

/*
 * Return: a text that names the file whose bytes could not be read first, with the reason; NULL if
 *         there is none. It belongs to @set.
 */
const char *fileset_failure(const struct fileset *set);

/*
 * Make the bytes of the regular file that is open at *@fd, which is taken over: *@fd is -1 on
 * success. @path is where the file can be opened again, and what messages call it. The first bytes
 * are read at once, so that a file that cannot be read at all is not taken.
 *
 * @stays_open: never close the file, because this process may not open @path
 *
 * Return: 0; -EISDIR or -EINVAL if it is no regular file; or another negative errno, such as
 *         -ENOMEM if the file is larger than the address space.
 */
_must_check_ int filebytes_new(struct fileset *set, const char *path, int *fd, bool stays_open,
			       struct filebytes **ret_file);

/* Make bytes that are all in memory. @bytes is borrowed. Return: 0 or -ENOMEM. */
_must_check_ int filebytes_new_in_memory(const void *bytes, size_t size,
					 struct filebytes **ret_file);

/* Each reference is given back by filebytes_unref(), which returns NULL. Return: @file. */
struct filebytes *filebytes_ref(struct filebytes *file);
struct filebytes *filebytes_unref(struct filebytes *file);

/* Return: how many bytes the file had when it was opened. */
uint64_t filebytes_size(const struct filebytes *file);

/*
 * Return: the @size bytes at @offset, which stay where they are as long as @file; NULL if the file
 *         is shorter, or if they cannot be read: then the failure is in the set.
 */
const uint8_t *filebytes_get(struct filebytes *file, uint64_t offset, uint64_t size);

/* Copy the @size bytes at @offset. Return: whether filebytes_get() has them. */
_must_check_ static inline bool filebytes_copy(struct filebytes *file, uint64_t offset,
					       void *ret_bytes, size_t size)
{
	const uint8_t *bytes = filebytes_get(file, offset, size);

	if (bytes)
		memcpy(ret_bytes, bytes, size);
	return bytes;
}

/*
 * Read all bytes now, of a file that another process may still be writing to: bytes that are
 * appended meanwhile do not count.
 *
 * Return: 0; -ESTALE if the file became shorter; or another negative errno. The set has no failure.
 */
_must_check_ int filebytes_read_all(struct filebytes *file);

DEFINE_CLEANUP(struct filebytes *, filebytes_unref);
