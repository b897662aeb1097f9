/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool records
 *
 * Goes through the records that were copied from the pool, which any recorded program can
 * overwrite, and leaves out those that the plugin cannot have written: of other kinds, about the
 * kernel or about no process, of a CPU that the pool does not have, and of a time that is to come.
 *
 * Each function works in place, and returns the number of bytes that are left.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct record;

struct poolrecords {
	uint32_t n_cpus; /* of the pool */
	uint64_t now_ns;
	uint64_t n_refused; /* records that were left out */
	uint64_t n_lost;    /* task records that the programs had no room for, or that made no
			     * sense */
	uint64_t lost_ns;   /* when the last of them were lost; 0: none was */

	/* Gets each task record that is left. */
	void (*note_record)(void *userdata, const struct record *record);
	/* Return: whose the process of a record of code is. @parent: 0: not known */
	uid_t (*user_of)(void *userdata, uint32_t pid, uint32_t parent);
	void *userdata; /* of these two, borrowed */
};

/* Task records. LOST records are counted and left out. Records that make no sense end the walk, and
 * count as one that is lost. */
size_t poolrecords_tasks(struct poolrecords *records, uint8_t *bytes, size_t size);

/* Records of code (daemon/plugin/coderecord.h), which get their process's user. If some make no
 * sense, what is left ends before them, and @ret_torn is set. */
size_t poolrecords_code(struct poolrecords *records, uint8_t *bytes, size_t size, bool *ret_torn);

/* Whole switch records of a CPU of the pool. */
size_t poolrecords_switches(struct poolrecords *records, uint8_t *bytes, size_t size);
