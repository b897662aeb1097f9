/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Disk use
 *
 * How much snapshots and the object store take on the disk. They share files by hard links, so each
 * file is counted once, and removing a snapshot frees only files that no other snapshot has.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct diskuse;

/* An amount of room in a file system. */
struct diskuse_amount {
	uint64_t bytes;
	uint64_t inodes;
};

/* Return: 0 or -ENOMEM. */
_must_check_ int diskuse_new(struct diskuse **ret_diskuse);
struct diskuse *diskuse_free(struct diskuse *diskuse);

DEFINE_CLEANUP(struct diskuse *, diskuse_free);

/*
 * Count the snapshot in the directory @dir_fd. Snapshots are numbered from 0 in the
 * order in which they are added.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int diskuse_add_snapshot(struct diskuse *diskuse, int dir_fd);

/*
 * Count the store directory @dir_fd. A file for which @needed returns false becomes free as soon as
 * no snapshot has it.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int diskuse_add_store(struct diskuse *diskuse, int dir_fd,
				   bool (*needed)(const char *name, void *userdata),
				   void *userdata);

/* Return: how much everything that was added takes, less what was removed since. */
struct diskuse_amount diskuse_taken(const struct diskuse *diskuse);

/* Return: how many bytes of what is taken snapshots have; the rest is only in the store. */
uint64_t diskuse_in_snapshots(const struct diskuse *diskuse);

/* Return: how much would become free if the snapshot @n was removed. */
struct diskuse_amount diskuse_own(const struct diskuse *diskuse, size_t n);

/* Count without the snapshot @n from now on. Return: how much becomes free if it is removed. */
struct diskuse_amount diskuse_remove(struct diskuse *diskuse, size_t n);
