/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Spool
 *
 * Snapshots on disk. STATE/snapshots holds one directory for each, and while one is written a
 * hidden one beside them, so that a snapshot is there whole or not at all. STATE/store holds the
 * objects that snapshots share by hard links (daemon/objects/objectstore.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/spool/diskuse.h"
#include "util/snapid.h"

struct spool;

struct spool_entry {
	char id[SNAPID_SIZE];
	char created[64]; /* as the manifest says it */
	uint64_t bytes;
	uint32_t n_cpus;

	/* What it is of, and what is missing; see ptd-snapshot(5). */
	char command[256]; /* "": of all, or nobody said */
	uint32_t pid;      /* 0: the same */
	bool command_cut;  /* its beginning was overwritten */
	uint32_t n_missing;
	uint64_t n_records_lost;
	uint64_t bytes_dropped, bytes_overwritten;
	bool kept; /* retention leaves it alone */
};

struct spool_limits {
	uint64_t max_use;   /* bytes snapshots and store together may take; UINT64_MAX: any */
	uint64_t keep_free; /* bytes to leave free in the file system */
	uint64_t keep_free_inodes;
};

/*
 * Open the spool under @state_dir, which is made if need be, lock it, and remove what an earlier
 * run left half-written.
 *
 * Return: 0; -EBUSY if another ptd has it; or negative errno.
 */
_must_check_ int spool_new(const char *state_dir, struct spool **ret_spool);
struct spool *spool_free(struct spool *spool);

DEFINE_CLEANUP(struct spool *, spool_free);

/* Borrowed descriptors of the store, and the absolute path of the snapshots. */
int spool_store_fd(const struct spool *spool);
const char *spool_path(const struct spool *spool);

/* The size of the spool's file system; inodes are 0 if it has no number of them. Return: 0, or
 * negative errno. */
_must_check_ int spool_capacity(const struct spool *spool, struct diskuse_amount *ret_room);

/* Make a hidden directory for the snapshot @id. Return: 0, or negative errno. */
_must_check_ int spool_begin(struct spool *spool, const char *id, int *ret_dir_fd);

/* Make the snapshot @id visible: everything in it is on disk before it has its name. Return: 0, or
 * negative errno. */
_must_check_ int spool_commit(struct spool *spool, const char *id, int dir_fd);

/* Remove what spool_begin() made. */
void spool_abort(struct spool *spool, const char *id);

/* The id that @name stands for: itself, or that of the newest. Return: 0, -ENOENT if there can be
 * none, or another negative errno. */
_must_check_ int spool_resolve(const struct spool *spool, const char *name,
			       char ret_id[static SNAPID_SIZE]);

/* Open a snapshot's directory for reading. @name, here as below: its id, or SNAPID_LATEST. Return:
 * 0, -ENOENT, or negative errno. */
_must_check_ int spool_open(const struct spool *spool, const char *name, int *ret_dir_fd);

/* Return: how many snapshots there are, at less cost than listing them. */
size_t spool_count(const struct spool *spool);

/* All snapshots, oldest first; the caller frees the array. Return: 0, or negative errno. */
_must_check_ int spool_list(const struct spool *spool, struct spool_entry **ret_entries,
			    size_t *ret_n_entries);

/* What is free in the spool's file system; inodes are UINT64_MAX if it has no number of them.
 * Return: 0, or negative errno. */
_must_check_ int spool_free_room(const struct spool *spool, struct diskuse_amount *ret_room);

/*
 * Count what the snapshots @entries, as spool_list() lists them, and the store take, by a look at
 * each file. @needed is as for diskuse_add_store().
 *
 * Return: 0, and @ret_diskuse, the caller's, has the snapshots in their order; or negative errno,
 *         -ENOENT if one was removed meanwhile.
 */
_must_check_ int spool_measure(const struct spool *spool, const struct spool_entry *entries,
			       size_t n_entries, bool (*needed)(const char *name, void *userdata),
			       void *userdata, struct diskuse **ret_diskuse);

/* Keep the snapshot @name whatever the limits are, or no longer; in any thread. Return: 0, -ENOENT,
 * or another negative errno. */
_must_check_ int spool_keep(struct spool *spool, const char *name, bool keep);

/*
 * Remove the snapshot @name; in any thread. What only it had of the store is left to a sweep.
 *
 * Return: 0; -ENOENT if there is none; -EPERM if it is kept; or another negative errno.
 */
_must_check_ int spool_remove(struct spool *spool, const char *name);
