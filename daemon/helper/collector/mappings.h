/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mappings
 *
 * Writes records for the executable mappings of a process as /proc shows them: those MMAP2 that the
 * kernel would have written if somebody had listened when they were made, with the build-ids of
 * their files. Build-ids are remembered, because many processes map the same files. They are read
 * in another thread, since a file may never answer; it has no
 * build-id then.
 */

#include <stdint.h>

#include "base/base.h"
#include "util/perf/codec.h"

/*
 * Reads the build-ids of files for the event loop, in a thread of its own. A read may wait for a
 * disk, or for a file system that never answers, and the event loop must not. If the thread does
 * not answer in time, the build-id of the file counts as unknown, and so do those of the next files
 * until it does.
 */

struct buildid;
struct idreader;

/* Start the thread. Return: 0; -EBUSY if too many threads still wait for a disk; or another
 * negative errno. */
_must_check_ int idreader_new(struct idreader **ret_reader);

/* Free the reader without waiting for its thread, which frees what it has when its read ends.
 * Return: NULL. */
struct idreader *idreader_free(struct idreader *reader);

DEFINE_CLEANUP(struct idreader *, idreader_free);

/*
 * @fd: of the file; the call takes it over
 *
 * Return: 0 and @ret_id, as buildid_read() does; -ETIMEDOUT if it takes longer than @timeout_ns;
 *         -EBUSY if the thread still reads another file; or another negative errno.
 */
_must_check_ int idreader_read(struct idreader *reader, int fd, uint64_t timeout_ns,
			       struct buildid *ret_id);

struct mappings;

/* Return: the time now on the records' clock, in ns. */
typedef uint64_t (*mappings_now_fn)(void *userdata);

struct mappings_options {
	int pid_fd; /* /proc/PID; borrowed */
	uint32_t pid;
	mappings_now_fn now;
	record_put_fn put; /* is given each record */
	void *userdata;    /* of now() and put(), borrowed */
};

/* Return: 0, or -ENOMEM. */
_must_check_ int mappings_new(struct mappings **ret_mappings);
struct mappings *mappings_free(struct mappings *mappings);

DEFINE_CLEANUP(struct mappings *, mappings_free);

/*
 * Write the records of one process. The time of each is read before the mapping is.
 *
 * Return: 0, also if the process executes other programs all the time; the negative errno of put(),
 *         after which there are no more; or another negative errno if the mappings cannot be read.
 */
_must_check_ int mappings_write(struct mappings *mappings, const struct mappings_options *options);
