/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Live code
 *
 * Adds to a snapshot the code of processes that is in no file. If the source gives the code that
 * ran, that is taken from the code store; otherwise the anonymous executable memory of the
 * processes is read as it is now. Also adds the files in which JIT compilers describe such code.
 * The collector (daemon/helper/collector/link.h) reads memory and files. The manifest says what was
 * kept, and why something was not. MemMax= and JitMax=, which users share, limit what is kept of
 * one user, and so does their part of what snapshots may take (daemon/snapshot/userparts.h).
 */

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "daemon/helper/collector/link.h"
#include "util/map.h"

struct bundle;
struct collectorlink;
struct snapshot_known;
struct snapshot_request;
struct userparts;

/* The pointers above the last two fields are borrowed. */
struct livecode {
	const struct snapshot_request *request;
	const struct snapshot_known *known;
	int dir_fd; /* of the snapshot */
	struct bundle *bundle;
	const struct map *pids;  /* processes that ran; nothing of others is kept */
	struct userparts *parts; /* of the snapshot */
	FILE *notes;             /* where lines of the manifest are written */
	uint64_t bytes;          /* that were kept */

	struct collectorlink *link; /* its own; NULL: not connected yet */
	struct hungusers hung;
	struct map spent; /* user → ns that the collector took for what is the user's */
	int pages_fd;     /* of the file of memory; to be -1 at first */
};

/* Free what it has of its own. */
void livecode_deinit(struct livecode *livecode);

/* Add the code or memory, or the files of JIT compilers. Return: 0, -ECANCELED, or negative
 * errno. */
_must_check_ int livecode_add_memory(struct livecode *livecode);
_must_check_ int livecode_add_files(struct livecode *livecode);
