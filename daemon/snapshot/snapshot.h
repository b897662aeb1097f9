/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshot
 *
 * Writes what a source holds now as the files of a snapshot (ptd/snapshot.h). This happens in the
 * thread of a job. The thread reads only what is its own, what does not change, and the rings
 * themselves, whose writers go on: bytes that a writer reached before they were copied are dropped.
 * The rings are copied first. Then the job gathers what the rest of the daemon knows, so that this
 * knowledge is never older than the PT that it explains.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/share/share.h"
#include "daemon/sideband/scope.h"

struct caller;
struct codestore;
struct copier;
struct jitfile;
struct object;
struct sideband_view;
struct source;

/* What the daemon knows of the programs that ran. */
struct snapshot_known {
	const struct sideband_view *tasks;
	uint64_t sideband_lost; /* records of tasks that were lost since the daemon started */
	uint64_t n_unread;      /* processes that ran before, whose mappings were not to be had */
	uint64_t taken_over_ns; /* on CLOCK_MONOTONIC: when the daemon took the rings over; or 0 */
	uint64_t code_lost_bytes;      /* bytes of code in no file that only earlier daemons had */
	struct object *const *objects; /* all in the store; those of tasks that ran are selected */
	size_t n_objects;
	struct codestore *code;         /* the code that ran; NULL: the source does not give it */
	const struct jitfile *jitfiles; /* as they are now */
	size_t n_jitfiles;
	uint64_t ring_bytes; /* about what all rings of the source hold */
};

/* Everything is borrowed for the call. */
struct snapshot_request {
	const char *id;
	struct source *source;   /* nothing else holds its rings before the call returns */
	struct copier *copier;   /* of the objects, some of which may not be copied yet */
	int store_fd;            /* the folder with their copies */
	const char *runtime_dir; /* where the collector's socket is, which reads memory */
	struct scope scope;
	const struct caller *caller; /* who asked for the snapshot */
	uint64_t jit_max;            /* bytes of JIT compilers' files, at most */
	uint64_t mem_max;            /* bytes of anonymous memory, at most */
	uint64_t snapshots_max;      /* bytes that all snapshots may take together */
	uint64_t snapshots_taken;    /* bytes that those take that are there */
	const atomic_bool *cancel;   /* the call gives up once this is true; may be NULL */

	/* Fill in what is known by now, which stays valid for the rest of the call. Return: 0, or
	 * negative errno. */
	int (*gather)(void *userdata, struct snapshot_known *ret_known);
	void *userdata;
};

struct snapshot_result {
	uint64_t bytes;             /* of all that was written or linked */
	uint64_t bytes_pt;          /* of PT among these */
	uint64_t bytes_overwritten; /* of PT that was asked for, and is gone */

	/* On CLOCK_MONOTONIC, in ns. The snapshot has all PT that was asked for since the first of
	 * them (0: nothing is missing); the second is when the rings were held. */
	uint64_t complete_since_ns, taken_ns;

	uint32_t n_cpus; /* that have any PT */
	uint32_t n_objects;
	uint32_t n_missing;      /* objects that the snapshot should have, and has not */
	uint32_t n_without_room; /* those for which there was no room on the disk */
};

/*
 * Write all files of a snapshot into the empty directory @dir_fd.
 *
 * Return: 0; -ECANCELED; -ESRCH if no process of the scope ran; or another negative errno.
 *         On failure @reterr_what is the name, a constant, of the file or folder that failed.
 */
_must_check_ int snapshot_write(const struct snapshot_request *request, int dir_fd,
				struct snapshot_result *ret_result, const char **reterr_what);
