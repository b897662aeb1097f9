/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Object map
 *
 * The file objects.map of a snapshot. It states, for each path that was mapped, where below the
 * directory objects/ the file is that was mapped by this path.
 */

#include <stdbool.h>

#include "base/base.h"

struct buildid;
struct objectmap;
struct objectsmap_inode;

enum {
	OBJECTMAP_NO_MAP = 1, /* there is no objects.map: files can be found by build-id alone */
	OBJECTMAP_NONE = 2,   /* the path is not in the map, or not with this build-id */
	OBJECTMAP_LOST = 3,   /* ptd could not copy the file */
	OBJECTMAP_AMBIGUOUS =
	    4, /* several files had the path, and it is not known which one is meant */
};

/*
 * Read objects.map in @snapshot_dir. If there is none (a directory that perf itself wrote has
 * none), the map is empty.
 *
 * Return: 0; -EBADMSG if it is malformed; or negative errno.
 */
_must_check_ int objectmap_new(const char *snapshot_dir, struct objectmap **ret_map);
struct objectmap *objectmap_free(struct objectmap *map);

/*
 * Find the file that was mapped by @path and is said to have the build-id @id, whose size is 0 if
 * it is not known. A line of the map for the inode @inode, all 0 if it is not known, comes first.
 * Anyone can write any build-id into a file; therefore a file with this build-id
 * that was mapped by another path does not count. A file may also be found by the hash of its
 * content, if other files had its build-id, too; the caller must check that its build-id is the
 * right one.
 *
 * Return: 0, and @ret_location, a path below the snapshot's directory that belongs to @map;
 *         OBJECTMAP_LOST, and @ret_location is the SHA-256 of the file that is missing, in
 *         hexadecimal, which belongs to @map, or NULL; or another of OBJECTMAP_….
 */
_must_check_ int objectmap_find(const struct objectmap *map, const char *path,
				const struct buildid *id, const struct objectsmap_inode *inode,
				const char **ret_location);

/* Return: whether the map tells several files of this path apart by their inodes. */
bool objectmap_tells_inodes(const struct objectmap *map, const char *path);

DEFINE_CLEANUP(struct objectmap *, objectmap_free);
