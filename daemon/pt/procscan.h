/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Scan of /proc
 *
 * Writes records for all tasks that live, as /proc shows them: those that the kernel would have
 * written if somebody had listened when the tasks began. These are COMM for each thread and MMAP2
 * for each executable mapping, with the build-id of its file. Only somebody else may look at
 * mappings, who is asked for the records of one process after the other.
 *
 * The caller must already listen to the kernel's records when a scan begins. The time of each
 * record is read before /proc is, so what the kernel writes later is newer. Processes that are
 * forked meanwhile are found, too, even if their parent has not been scanned yet. Those that took
 * too long are asked for again when all others are known: on a busy machine any may.
 *
 * A machine may have very many tasks. Therefore a scan goes on for a limited time at each call. It
 * runs in the event loop; files are read in another thread (daemon/helper/collector/mappings.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/perf/codec.h"

struct procscan;

/* Return: the time now on the records' clock, in ns. */
typedef uint64_t (*procscan_now_fn)(void *userdata);

/*
 * Get the MMAP2 records of process @pid, stamped not before this is first called for it. It waits
 * for @wait_ns at most.
 *
 * Return: 0 and the bytes, which the caller frees; -EAGAIN: it is to be called again for the same
 *         process; -ENOTCONN without a collector, or -ENOMEM, which end the scan; or another
 *         negative errno if the process's mappings are not to be had.
 */
typedef int (*procscan_maps_fn)(void *userdata, uint32_t pid, uint64_t wait_ns, uint8_t **ret_bytes,
				size_t *ret_size);

struct procscan_options {
	int proc_fd; /* the folder /proc; borrowed */
	procscan_now_fn now;
	procscan_maps_fn maps;
	record_put_fn put; /* is given each record */
	/* Processes of which @maps said -ETIMEDOUT are asked for once more from now on; NULL: there
	 * is nothing to do then. */
	void (*again)(void *userdata);
	void *userdata; /* of the functions, borrowed */
};

struct procscan_stats {
	size_t n_processes, n_threads, n_maps;
	size_t n_unreadable; /* processes whose mappings are not to be had, though they live */
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
 *         processes cannot be read, or maps() ended the scan.
 */
_must_check_ int procscan_step(struct procscan *scan, uint64_t budget_ns);

struct procscan_stats procscan_stats(const struct procscan *scan);

/*
 * Go on with the scan *@scan, for source_ops.tasks. It is made if it is NULL, and freed and set to
 * NULL at its end. @ret_stats is set when all tasks have been scanned.
 *
 * Return: as procscan_step().
 */
_must_check_ int procscan_go_on(struct procscan **scan, const struct procscan_options *options,
				uint64_t budget_ns, struct procscan_stats *ret_stats);
