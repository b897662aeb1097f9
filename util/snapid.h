/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapid
 *
 * What snapshots are called: an id, such as 20261121T083000.123456Z-1, is the name of the
 * snapshot's directory; "latest" stands for the newest one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

/* Room for an id and its NUL. */
#define SNAPID_SIZE   64
#define SNAPID_LATEST "latest"

/* May @id be a snapshot's? Says nothing about whether it exists. SNAPID_LATEST is no id. */
bool snapid_valid(const char *id);

/*
 * The number behind an id's last '-'. It grows from snapshot to snapshot, whatever the clock does,
 * and says which is older.
 *
 * Return: the number, 0 if it has none.
 */
uint64_t snapid_sequence(const char *id);

/* Return: less than, equal to or greater than 0, as @a is older than, the same as, or newer than
 * @b. */
int snapid_compare(const char *a, const char *b);

/* Find the newest snapshot in the directory @dir_fd of them. What has no manifest is none. Return:
 * 0; -ENOENT if there is none; or another negative errno. */
_must_check_ int snapid_latest(int dir_fd, char ret_id[static SNAPID_SIZE]);
