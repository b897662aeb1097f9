/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tasks
 *
 * A table of the processes that live, as task records describe them: the names of their threads and
 * their executable mappings. From it records can be written that say all of this at once, so that
 * what a process mapped weeks ago is not lost with the record that said so.
 *
 * One thread at a time uses a table.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "util/perf/codec.h"

struct record;
struct record_mmap2;
struct tasks;

/* Executable memory of a process that is of no file. */
struct tasks_range {
	uint32_t pid;
	uid_t uid; /* whose process it is, as tasks_set_user() said */
	uint64_t start;
	uint64_t size; /* bytes */
	bool vdso;     /* the kernel put its own code there, as far as the records say */
};

/* Says whether a process lives. NULL: every process does whose end no record says. */
typedef bool (*tasks_alive_fn)(uint32_t pid);

/* A tasks_alive_fn that asks the kernel. */
bool tasks_is_alive(uint32_t pid);

/* Return: 0, or -ENOMEM. */
_must_check_ int tasks_new(tasks_alive_fn alive, struct tasks **ret_tasks);
struct tasks *tasks_free(struct tasks *tasks);

DEFINE_CLEANUP(struct tasks *, tasks_free);

/* Processes that begin, or execute a program, by the records that are added from now on are the
 * user's. Each user has a share of what can be remembered (daemon/share/share.h). */
void tasks_set_user(struct tasks *tasks, uid_t uid);

/*
 * Take note of what a record says.
 *
 * Return: 0; -ENOSPC if there are too many tasks or mappings to remember them all, or too many of
 *         their user; or -ENOMEM.
 */
_must_check_ int tasks_add(struct tasks *tasks, const struct record *record);

/* The same for a record that was written because somebody looked at the task, so that it is no
 * proof of a mapping at that moment. */
_must_check_ int tasks_add_found(struct tasks *tasks, const struct record *record);

/* Return: whether a process of a user was forgotten, because they had more than their part and
 * others needed room, and was not returned yet. */
bool tasks_next_given(struct tasks *tasks, uid_t *ret_uid);

/*
 * Return: whether the record of a mapping says only what records that were added say already. That
 * is so if the same part of the same file is mapped there, and nothing else was mapped over it
 * since. A reader of those records learns nothing from this one, because, like the kernel's
 * records, it does not see munmap.
 *
 * A mapping does not count as said if it was added by tasks_add_found(), inherited from a parent,
 * or made before tasks_reset_repeats(): a reader may not have it. Nothing counts as said of a
 * process that has a jitdump, because its code lies over mappings.
 */
bool tasks_repeats(struct tasks *tasks, const struct record *record);

/* Some records that were added are gone: from now on nothing counts as said that is added
 * before. */
void tasks_reset_repeats(struct tasks *tasks);

/* A process that repeats itself more than TASKS_STORM times a second. */
struct tasks_storm {
	uint32_t pid;
	char comm[RECORD_COMM_SIZE]; /* name of the thread that did it, which chose it itself */
};

#define TASKS_STORM 1000u

/* Return: whether there is one that was not returned yet. */
bool tasks_next_storm(struct tasks *tasks, struct tasks_storm *ret_storm);

/* Forget the processes that were killed, so that no record says that they ended. */
void tasks_forget_dead(struct tasks *tasks);

/* Return: the time of the latest record that was added; 0 if there was none. */
uint64_t tasks_time(const struct tasks *tasks);

/*
 * Give @put records, whose time is @time, that say all that is known: COMM for each thread, MMAP2
 * for each mapping.
 *
 * Return: how many records @put refused or could not be made.
 */
size_t tasks_write(const struct tasks *tasks, uint64_t time, record_put_fn put, void *userdata);

/* The same for the processes for which @wants returns true. */
size_t tasks_write_some(const struct tasks *tasks, uint64_t time,
			bool (*wants)(void *userdata, uint32_t pid), record_put_fn put,
			void *userdata);

/* Call @list for each mapping of a file that a living process has, with a record that mapped it. A
 * mapping may be listed by more than one record. */
void tasks_list_mapped(const struct tasks *tasks,
		       void (*list)(void *userdata, const struct record_mmap2 *mmap),
		       void *userdata);

/* Return: 0 and all ranges of living processes, in an array that the caller frees; or -ENOMEM. */
_must_check_ int tasks_ranges(const struct tasks *tasks, struct tasks_range **ret_ranges,
			      size_t *ret_n_ranges);
