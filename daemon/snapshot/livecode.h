/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Livecode
 *
 * The part of a snapshot that is code of processes which no object holds: what JIT compilers wrote
 * about theirs; and the code itself, of the software source as it was handed over when it ran, of
 * hardware as it lies in anonymous executable memory now. What is not kept is said, with the
 * reason, in the manifest.
 */

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"

struct bundle;
struct map;
struct snapshot_known;
struct snapshot_request;

/* All is borrowed. */
struct livecode {
	const struct snapshot_request *request;
	const struct snapshot_known *known;
	int dir_fd; /* of the snapshot */
	struct bundle *bundle;
	const struct map *pids; /* processes that ran; of others nothing is kept */
	FILE *notes;            /* lines of the manifest */
	uint64_t bytes;         /* that were kept */
};

/* Add memory, or the JITs' files. Return: 0, -ECANCELED, or negative errno. */
_must_check_ int livecode_add_memory(struct livecode *livecode);
_must_check_ int livecode_add_files(struct livecode *livecode);
