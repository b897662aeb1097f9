/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshot ids
 *
 * An id such as 20261121T083000.123456Z-1 is the name of a snapshot's directory; "latest" stands
 * for the newest snapshot.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

/* Room for an id and its NUL. */
#define SNAPID_SIZE   64
#define SNAPID_LATEST "latest"

struct timespec;

/* Print the id of a snapshot that is taken @now, by the wall clock. @sequence: one more than the
 * number of the snapshot before, see snapid_sequence(). */
void snapid_print(const struct timespec *now, uint64_t sequence, char ret_id[static SNAPID_SIZE]);

/*
 * Return: whether @id has the form of an id, whether or not the snapshot exists; "latest" has not.
 */
bool snapid_valid(const char *id);

/*
 * Read the number behind the last '-' of an id. It grows from snapshot to snapshot, whatever the
 * clock does, and so says which of two snapshots is older.
 *
 * Return: the number; 0 if @id has none.
 */
uint64_t snapid_sequence(const char *id);

/* Return: when the snapshot with that id was taken, by the wall clock, in seconds since 1970; or
 * -EINVAL if the id does not say so. */
_must_check_ int64_t snapid_time(const char *id);

/* Return: less than, equal to or greater than 0, as @a is older than, the same as, or newer than
 * @b. */
int snapid_compare(const char *a, const char *b);

/*
 * Find the newest snapshot in the directory @dir_fd. A directory without a manifest is no snapshot.
 *
 * Return: 0; -ENOENT if there is none; or another negative errno.
 */
_must_check_ int snapid_latest(int dir_fd, char ret_id[static SNAPID_SIZE]);
