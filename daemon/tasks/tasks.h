/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tasks
 *
 * The processes that live now, as the task records tell: their threads' names and their executable
 * mappings. A new epoch of the sideband begins with records made from it, so that what a process
 * mapped weeks ago is not lost with the record that said so.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "record/codec.h"

struct record;
struct record_mmap2;
struct tasks;

/* Executable memory of a process that is of no file. */
struct tasks_range {
	uint32_t pid;
	uint64_t start;
	uint64_t size;
	bool vdso; /* where the kernel put its own, as far as the records tell */
};

/* Says whether a process is there; NULL: all that did not say they ended are. */
typedef bool (*tasks_alive_fn)(uint32_t pid);

/* One that asks the kernel. */
bool tasks_is_alive(uint32_t pid);

_must_check_ int tasks_new(tasks_alive_fn alive, struct tasks **ret_tasks);
struct tasks *tasks_free(struct tasks *tasks);

DEFINE_CLEANUP(struct tasks *, tasks_free);

/*
 * Take note of what a record says.
 *
 * Return: 0; -ENOSPC if there are too many tasks or mappings to remember them all; or -ENOMEM.
 */
_must_check_ int tasks_add(struct tasks *tasks, const struct record *record);

/* The same of a record that tells of a task as it was found to be. */
_must_check_ int tasks_tell(struct tasks *tasks, const struct record *record);

/*
 * Does a mapping's record say only what records that were added say already: is the same part of
 * the same file mapped there, and has nothing else been mapped over it since? A reader of those
 * records, who like the kernel's records knows nothing of munmap, then learns nothing by it.
 *
 * What was told of, inherited, or mapped before @tasks was to doubt it counts as not said: a reader
 * need not have it. The same goes for a process that has a jitdump: its code lies over mappings.
 */
bool tasks_repeats(struct tasks *tasks, const struct record *record);

/* Some of what was added is in no record any more: only what comes from now on is repeated. */
void tasks_doubt(struct tasks *tasks);

/* A process that repeats itself more than TASKS_STORM times a second. */
struct tasks_storm {
	uint32_t pid;
	char comm[RECORD_COMM_SIZE]; /* of the thread that did it; as it chose it */
};

#define TASKS_STORM 1000u

/* Return: whether there is one that was not returned yet. */
bool tasks_next_storm(struct tasks *tasks, struct tasks_storm *ret_storm);

/* Forget the processes that were killed, and so could not say that they ended. */
void tasks_forget_dead(struct tasks *tasks);

/*
 * Make records, stamped @time, that say all that is known: COMM for each thread, MMAP2 for each
 * mapping.
 *
 * Return: how many records @put refused, or could not be made.
 */
size_t tasks_write(const struct tasks *tasks, uint64_t time, record_put_fn put, void *userdata);

/* Return: the time of the latest record that was added; 0 if there was none. */
uint64_t tasks_time(const struct tasks *tasks);

/* Give what those who live have mapped of files to @tell, by a record that mapped it; some by more
 * than one. */
void tasks_tell_mapped(const struct tasks *tasks,
		       void (*tell)(void *userdata, const struct record_mmap2 *mmap),
		       void *userdata);

/* All such ranges; the caller frees the array. Return: 0, or -ENOMEM. */
_must_check_ int tasks_ranges(const struct tasks *tasks, struct tasks_range **ret_ranges,
			      size_t *ret_n_ranges);
