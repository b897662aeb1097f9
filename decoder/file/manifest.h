/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manifest
 *
 * What a snapshot says of itself beside its perf.data (see ptd/snapshot.h), and whether its files
 * are those that were written.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/map.h"

struct manifest {
	bool is_there;
	int64_t realtime_offset_ns; /* 0 if not stated, like the next */
	int64_t monotonic_offset_ns;

	/* PT that was asked for, and is gone because rings were overwritten: all since then is
	 * there; 0: nothing is gone. */
	uint64_t bytes_overwritten;
	uint64_t complete_since_ns;

	/* Since when who ran where is known: of all CPUs, and of some from later on. */
	uint64_t sideband_since_ns;
	struct map switches_since; /* CPU → ns */

	/* Of a snapshot of one process: it and its descendants. Without such a statement all. */
	bool has_scope;
	struct map scope; /* pids */
};

void manifest_deinit(struct manifest *manifest);

/* Return: since when PT of @cpu can be attributed, in ns on the records' clock; 0: all of it. */
uint64_t manifest_since(const struct manifest *manifest, uint32_t cpu);

/*
 * Read the manifest of the directory open at @dir_fd, which messages call @dir, and compare its
 * files with SHA256SUMS, unless @force. A directory with neither of the two is no snapshot of ours,
 * and fine: its manifest is empty.
 *
 * Return: 0; -EKEYREJECTED if a file is not the one that was written, or is missing; -EBADMSG if
 *         manifest or sums are not what they should be; or another negative errno; each with
 *         @reterr_message, which the caller frees.
 */
_must_check_ int manifest_read(int dir_fd, const char *dir, bool force,
			       struct manifest *ret_manifest, char **reterr_message);
