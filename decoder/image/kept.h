/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kept
 *
 * What a snapshot's objects.map says: where below objects/ the file is that was mapped by a path.
 */

#include "base/base.h"

struct kept;

enum {
	KEPT_NONE = 1,      /* the path is not in the map, or its file could not be kept */
	KEPT_AMBIGUOUS = 2, /* the path was more than one file; only a build-id could tell which */
};

/*
 * Read DIR/objects.map. There need not be one: a directory that perf itself wrote has none.
 *
 * Return: 0; -EBADMSG if it is malformed; or negative errno.
 */
_must_check_ int kept_new(const char *snapshot_dir, struct kept **ret_kept);
struct kept *kept_free(struct kept *kept);

/* The file that was mapped by @path, relative to DIR; it is @kept's. Return: 0, or KEPT_…. */
_must_check_ int kept_find(const struct kept *kept, const char *path, const char **ret_location);

/* The same of those that lie under the hash of their content, as those with a build-id do when the
 * snapshot has two of one build-id. */
_must_check_ int kept_find_by_content(const struct kept *kept, const char *path,
				      const char **ret_location);

DEFINE_CLEANUP(struct kept *, kept_free);
