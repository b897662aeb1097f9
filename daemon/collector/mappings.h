/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mappings
 *
 * Writes records for the executable mappings of a process as /proc shows them: those MMAP2 that the
 * kernel would have written if somebody had listened when they were made, with the build-ids of
 * their files. Build-ids are remembered, because many processes map the same files. They are read
 * in another thread (daemon/collector/idreader.h), since a file may never answer; it has no
 * build-id then.
 */

#include <stdint.h>

#include "base/base.h"
#include "record/codec.h"

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
