/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manifest
 *
 * The manifest of a snapshot, which states what ptd knows of the snapshot beside its perf.data (see
 * ptd/snapshot.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/map.h"

struct reading;

struct manifest {
	bool is_there;
	char *complaint; /* owned; what differs from the sums, which does not matter; or NULL */
	int64_t realtime_offset_ns; /* 0: not known; like the next */
	int64_t monotonic_offset_ns;

	uint64_t taken_ns; /* when the snapshot was taken; 0: not known */

	/*
	 * How much of the PT that was asked for is missing because rings were overwritten, and
	 * since when it is complete; 0: none is missing.
	 */
	uint64_t bytes_overwritten;
	uint64_t complete_since_ns;

	/* Until when the PT of all CPUs is complete; 0: not known. */
	uint64_t complete_until_ns;

	/* Since when it is known who ran: on all CPUs, and, where it is later, on one CPU. */
	uint64_t sideband_since_ns;
	struct map switches_since; /* CPU → ns */
	/* For some processes it is known only since this time, or an earlier one: records of a user
	 * were dropped, or records were lost, which have no time. 0: for all processes. */
	uint64_t dropped_until_ns;
	bool has_unread; /* what some processes had mapped could not be read; they have names */

	/* The snapshot is only about a process and its descendants, whose pids are in @scope. */
	bool has_scope;
	struct map scope;
};

void manifest_deinit(struct manifest *manifest);

/* Return: since when it is known who ran on @cpu, in ns on the clock of the records; 0: always. */
uint64_t manifest_since(const struct manifest *manifest, uint32_t cpu);

/*
 * Read the manifest of the directory open at @dir_fd, which messages call @dir, and compare its
 * files with SHA256SUMS, unless @force. A directory with neither of the two is no snapshot of ours,
 * and fine: its manifest is empty. @reading: see sums_check().
 *
 * Return: 0; -EKEYREJECTED if a file is not the one that was written, or is missing; -EBADMSG if
 *         manifest or sums are not what they should be; or another negative errno; each with
 *         @reterr_message, which the caller frees.
 */
_must_check_ int manifest_read(int dir_fd, const char *dir, bool force, struct reading *reading,
			       struct manifest *ret_manifest, char **reterr_message);
