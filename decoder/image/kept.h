/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kept
 *
 * What a snapshot's objects.map says: where below objects/ the file is that was mapped by a path.
 */

#include "base/base.h"

struct buildid;
struct kept;

enum {
	KEPT_NO_MAP = 1,    /* the snapshot has none: its objects can be found by build-id alone */
	KEPT_NONE = 2,      /* the map has not this path, or not with this build-id */
	KEPT_LOST = 3,      /* the file could not be kept */
	KEPT_AMBIGUOUS = 4, /* the path was more than one file; it is not known which is meant */
};

/*
 * Read DIR/objects.map. There need not be one: a directory that perf itself wrote has none.
 *
 * Return: 0; -EBADMSG if it is malformed; or negative errno.
 */
_must_check_ int kept_new(const char *snapshot_dir, struct kept **ret_kept);
struct kept *kept_free(struct kept *kept);

/*
 * The file that was mapped by @path and is claimed to have the build-id @id, or an unknown one if
 * its size is 0; relative to DIR, and @kept's. Anybody can write any build-id into his file: that
 * another path leads to one with this build-id means nothing. A file may also lie under the hash of
 * its content, as those do whose build-id others claim, too; what its build-id is, is for the
 * caller to see.
 *
 * Return: 0, or KEPT_….
 */
_must_check_ int kept_find(const struct kept *kept, const char *path, const struct buildid *id,
			   const char **ret_location);

DEFINE_CLEANUP(struct kept *, kept_free);
