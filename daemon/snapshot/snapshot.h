/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshot
 *
 * Freezes a source, and turns what it held then into the files of a snapshot (ptd/snapshot.h). It
 * runs in a worker: all it reads is either its own, immutable, or the rings themselves, of which it
 * drops what their writers reached while it copied. Rings go first, right after the freeze; what
 * explains them is gathered from the rest of the daemon when they have been copied, so that it is
 * never older than they are.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/spool/diskuse.h"
#include "daemon/tasks/scope.h"

struct caller;
struct codestore;
struct jitfile;
struct objectstore;
struct object;
struct sideband_view;
struct source;

/* What the daemon knows of the programs that ran. */
struct snapshot_known {
	const struct sideband_view *tasks;
	uint64_t sideband_lost;
	struct object *const *objects; /* what is kept; only those of tasks that ran are taken */
	size_t n_objects;
	struct codestore *code;         /* that ran; NULL: the source does not know */
	const struct jitfile *jitfiles; /* as they are now */
	size_t n_jitfiles;
	uint64_t ring_bytes; /* about what all rings of the source hold */
};

/* Everything is borrowed for the call. */
struct snapshot_request {
	const char *id;
	struct source *source;     /* that nobody else freezes before the call returns */
	struct objectstore *store; /* whose the objects are: some may still wait to be copied */
	int store_fd;
	struct scope scope;
	const struct caller *caller; /* who asked for it */
	uint64_t jit_max, mem_max;   /* bytes of JITs' files and of anonymous memory, at most */
	const atomic_bool *cancel;   /* give up when it becomes true; may be NULL */

	/* Fill in what is known by now. It stays for the rest of the call. Return: 0, or negative
	 * errno. */
	int (*gather)(void *userdata, struct snapshot_known *ret_known);
	void *userdata;
};

struct snapshot_result {
	uint64_t bytes;             /* of data and objects */
	uint64_t bytes_pt;          /* of PT in it */
	uint64_t bytes_overwritten; /* of PT that was asked for, and is gone */
	/* On CLOCK_MONOTONIC: all PT since then is in it (0: since all that was asked for), and
	 * when it was taken. */
	uint64_t complete_since_ns, taken_ns;
	uint32_t n_cpus; /* that have any */
	uint32_t n_objects;
	uint32_t n_missing; /* objects that could not be kept */
};

/*
 * Write all files of a snapshot into the empty directory @dir_fd.
 *
 * Return: 0; -ECANCELED; -ESRCH if the process of the scope did not run; or negative errno, and
 *         @reterr_what is the file or step that failed, a constant.
 */
_must_check_ int snapshot_write(const struct snapshot_request *request, int dir_fd,
				struct snapshot_result *ret_result, const char **reterr_what);

/* What that will take on the disk, as a rule at most: a scope may leave out most of it. What the
 * snapshot only links to is not counted. */
struct diskuse_amount snapshot_estimate(const struct snapshot_request *request,
					const struct snapshot_known *known);
