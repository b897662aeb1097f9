/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool records
 *
 * Goes through the records that were copied from a pool, and leaves out those that the pool's user
 * has no right to write: about processes and threads that are not his (daemon/soft/poolclaims.h),
 * about the kernel, about other pools' CPUs, of a time at which nobody can have written them now,
 * and of kinds that the plugin does not write. So whatever a program writes into its pool, it can
 * only lie about processes of its own user. Task records of all users are kept together, so each
 * gets a note of whose program wrote it (record_set_writer()).
 *
 * Each function works in place, and returns the number of bytes, or items, that are left.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/soft/poolclaims.h"

struct source_event;

/* Records of a time so long before the last walk may be new: their writer may have been stopped. */
#define POOLRECORDS_LATE_NS UINT64_C(10000000000)

struct poolrecords {
	struct poolclaims_walk walk;
	uint32_t first_cpu, n_cpus; /* of the pool */
	uint64_t since_ns;          /* of the last walk over the same ring, on the records' clock */
	uint64_t now_ns;
	uint64_t n_refused; /* records that were left out, about somebody else */
	uint64_t n_lost;    /* task records that the programs had no room for, or that made no
			     * sense */
	uint64_t lost_ns;   /* when the last of them were lost; 0: none was */
	/* Gets each number that was believed to write a record; may be NULL. */
	void (*note_writer)(void *userdata, uint32_t pid);
	void *userdata; /* of note_writer(), borrowed */
};

/* Task records. LOST records are counted and left out. Records that make no sense end the walk, and
 * count as one that is lost. */
size_t poolrecords_tasks(struct poolrecords *records, uint8_t *bytes, size_t size);

/* Records of code (daemon/emu/coderecord.h), which get the pool's user. If some make no sense, what
 * is left ends before them, and @ret_torn is set. */
size_t poolrecords_code(struct poolrecords *records, uint8_t *bytes, size_t size, bool *ret_torn);

/* Whole switch records of a CPU of the pool. */
size_t poolrecords_switches(struct poolrecords *records, uint8_t *bytes, size_t size);

size_t poolrecords_events(struct poolrecords *records, struct source_event *events, size_t n);
