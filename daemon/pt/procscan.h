/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Scan of /proc
 *
 * Writes records for all tasks that live, as /proc shows them: those that the kernel would have
 * written if somebody had listened when the tasks began. These are COMM for each thread and MMAP2
 * for each executable mapping, with the build-id of its file.
 *
 * The caller must already listen to the kernel's records when a scan begins. The time of each
 * record is read before /proc is, so what the kernel writes later is newer. Processes that are
 * forked meanwhile are found, too, even if their parent has not been scanned yet.
 *
 * A machine may have very many tasks. Therefore a scan goes on for a limited time at each call. It
 * runs in the event loop; files are read in another thread (daemon/pt/idreader.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "record/codec.h"

struct procscan;

/* Return: the time now on the records' clock, in ns. */
typedef uint64_t (*procscan_now_fn)(void *userdata);

struct procscan_options {
	int proc_fd; /* the folder /proc; borrowed */
	procscan_now_fn now;
	record_put_fn put; /* is given each record */
	void *userdata;    /* of now() and put(), borrowed */
};

struct procscan_stats {
	size_t n_processes, n_threads, n_maps;
	size_t n_unreadable; /* processes whose maps we may not read */
	size_t n_refused;    /* records that @put did not take */
};

enum {
	PROCSCAN_MORE = 1, /* there are more tasks; the same as SOURCE_MORE */
};

/* Make a scan that has not begun. Return: 0, or negative errno. */
_must_check_ int procscan_new(const struct procscan_options *options, struct procscan **ret_scan);
struct procscan *procscan_free(struct procscan *scan);

DEFINE_CLEANUP(struct procscan *, procscan_free);

/*
 * Go on for about @budget_ns.
 *
 * Return: 0 once all tasks have been scanned; PROCSCAN_MORE; or negative errno: the list of
 *         processes cannot be read.
 */
_must_check_ int procscan_step(struct procscan *scan, uint64_t budget_ns);

struct procscan_stats procscan_stats(const struct procscan *scan);

/*
 * Go on with the scan *@scan, for source_ops.tasks. It is made if it is NULL, and freed and set to
 * NULL at its end.
 *
 * Return: as procscan_step().
 */
_must_check_ int procscan_go_on(struct procscan **scan, const struct procscan_options *options,
				uint64_t budget_ns);
