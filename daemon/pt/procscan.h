/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Procscan
 *
 * All tasks that live, as /proc shows them, told by the records that the kernel would have written
 * had somebody listened when they began: COMM for each thread, MMAP2 for each executable mapping,
 * with the build-id of its file.
 *
 * Whoever scans listens to the kernel's records first. What /proc says is stamped with a moment
 * before it was read: what the kernel tells of later is newer. Those who are forked meanwhile,
 * maybe by one that has not been told of yet, are told of, too.
 *
 * A scan goes on for as long as it is given at a time; there may be very many tasks.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "record/codec.h"

struct procscan;

/* The time now on the clock of the records, in ns. */
typedef uint64_t (*procscan_now_fn)(void *userdata);

struct procscan_options {
	int proc_fd; /* the folder /proc; borrowed */
	procscan_now_fn now;
	record_put_fn put;
	void *userdata; /* of both */
};

struct procscan_stats {
	size_t n_processes, n_threads, n_maps;
	size_t n_unreadable; /* processes whose maps we may not read */
	size_t n_refused;    /* records that @put did not take */
};

enum {
	PROCSCAN_MORE = 1, /* not all have been told of yet; the same as SOURCE_MORE */
};

/* Return: 0, or negative errno. */
_must_check_ int procscan_new(const struct procscan_options *options, struct procscan **ret_scan);
struct procscan *procscan_free(struct procscan *scan);

DEFINE_CLEANUP(struct procscan *, procscan_free);

/*
 * Go on for about @budget_ns.
 *
 * Return: 0 once all have been told of; PROCSCAN_MORE; or negative errno: the list of processes
 *         cannot be read.
 */
_must_check_ int procscan_step(struct procscan *scan, uint64_t budget_ns);

struct procscan_stats procscan_stats(const struct procscan *scan);

/*
 * One step of *@scan, which is made if there is none, and freed at its end: what source_ops.tasks
 * does. Return: as procscan_step().
 */
_must_check_ int procscan_go_on(struct procscan **scan, const struct procscan_options *options,
				uint64_t budget_ns);
