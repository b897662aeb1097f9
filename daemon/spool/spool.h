/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Spool
 *
 * The state directory: STATE/snapshots has a directory for each snapshot. A snapshot is written
 * into a hidden directory beside them, which is renamed in the end, so a snapshot is complete or
 * absent. STATE/store is the store directory (daemon/spool/storedir.h), to whose files snapshots
 * have hard links.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/spool/diskuse.h"
#include "util/snapid.h"

struct spool;

struct spool_entry {
	char id[SNAPID_SIZE];
	char created[64]; /* in the words of the manifest */
	uint64_t bytes;
	uint32_t n_cpus;

	/* What was recorded, and what is missing; see ptd-snapshot(5). */
	char command[256]; /* "": everything, or not known */
	uint32_t pid;      /* 0: everything, or not known */
	bool command_cut;  /* the beginning of the command was overwritten */
	uint32_t n_missing;
	uint64_t n_records_lost;
	uint64_t bytes_dropped, bytes_overwritten;
	bool kept; /* retention does not remove it */
};

struct spool_limits {
	uint64_t max_use;   /* bytes that snapshots and store may take together; UINT64_MAX: any */
	uint64_t keep_free; /* bytes to leave free in the file system */
	uint64_t keep_free_inodes;
};

bool spool_limits_equal(const struct spool_limits *a, const struct spool_limits *b);

/*
 * Open the spool in @state_dir, which is made if it does not exist, lock it, and remove incomplete
 * snapshots of an earlier run.
 *
 * Return: 0; -EBUSY if another ptd uses it; or another negative errno.
 */
_must_check_ int spool_new(const char *state_dir, struct spool **ret_spool);
struct spool *spool_free(struct spool *spool);

DEFINE_CLEANUP(struct spool *, spool_free);

/* Return: a borrowed descriptor of the store directory. */
int spool_store_fd(const struct spool *spool);

/* Return: the absolute path of the directory of snapshots, which is the spool's. */
const char *spool_path(const struct spool *spool);

/* Get the size of the spool's file system; inodes are 0 if it does not count them. Return: 0, or
 * negative errno. */
_must_check_ int spool_capacity(const struct spool *spool, struct diskuse_amount *ret_room);

/* Make a hidden directory for the snapshot @id. Return: 0, or negative errno. */
_must_check_ int spool_begin(struct spool *spool, const char *id, int *ret_dir_fd);

/* Write all files of the snapshot @id to the disk, then make it visible. Return: 0, or negative
 * errno. */
_must_check_ int spool_commit(struct spool *spool, const char *id, int dir_fd);

/* Remove the directory that spool_begin() made. */
void spool_abort(struct spool *spool, const char *id);

/* Get the id that @name stands for: @name itself, or for SNAPID_LATEST that of the newest snapshot.
 * Return: 0; -ENOENT if there can be no such snapshot; or another negative errno. */
_must_check_ int spool_resolve(const struct spool *spool, const char *name,
			       char ret_id[static SNAPID_SIZE]);

/* Open the directory of a snapshot for reading. Here and below @name is an id or SNAPID_LATEST.
 * Return: 0, -ENOENT, or another negative errno. */
_must_check_ int spool_open(const struct spool *spool, const char *name, int *ret_dir_fd);

/* Return: how many snapshots there are. This is faster than to list them. */
size_t spool_count(const struct spool *spool);

/* List all snapshots, oldest first; the caller frees the array. Return: 0, or negative errno. */
_must_check_ int spool_list(const struct spool *spool, struct spool_entry **ret_entries,
			    size_t *ret_n_entries);

/* Get how much is free in the spool's file system; inodes are UINT64_MAX if it does not count them.
 * Return: 0, or negative errno. */
_must_check_ int spool_free_room(const struct spool *spool, struct diskuse_amount *ret_room);

/*
 * Count how much the snapshots @entries, in the order of spool_list(), and the store directory
 * take, by looking at each file. @needed is as for diskuse_add_store().
 *
 * Return: 0 and @ret_diskuse, which is the caller's and has the snapshots in the same order; or
 *         negative errno, -ENOENT if a snapshot was removed meanwhile.
 */
_must_check_ int spool_measure(const struct spool *spool, const struct spool_entry *entries,
			       size_t n_entries, bool (*needed)(const char *name, void *userdata),
			       void *userdata, struct diskuse **ret_diskuse);

/* Exclude the snapshot @name from retention, or include it again. To be called in any thread.
 * Return: 0, -ENOENT, or another negative errno. */
_must_check_ int spool_keep(struct spool *spool, const char *name, bool keep);

/*
 * Remove the snapshot @name. Files of the store directory that only this snapshot had are left to
 * storedir_sweep(). To be called in any thread.
 *
 * Return: 0; -ENOENT if there is no such snapshot; -EPERM if it is kept; or another negative errno.
 */
_must_check_ int spool_remove(struct spool *spool, const char *name);
