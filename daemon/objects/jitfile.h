/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JIT file
 *
 * The files in which JIT compilers note the code that they made: a jitdump, which the process maps
 * to announce it, and /tmp/perf-PID.map. A jitdump is known by its first bytes, whatever its name
 * is. A process may have several, and a perf map beside them. A jitdump is opened as soon as the
 * record of its mapping is seen, since it may be unlinked later. Each snapshot copies as much as
 * the file has at that time.
 *
 * A record is only a claim, and other users may control where a path leads. So a file is accepted
 * only if it is regular and owned by the user of the process; a perf map only if it is not a
 * symbolic link; and a jitdump only if the process has it mapped. Once the process has ended,
 * that cannot be checked any more: then the file must be the one whose inode the record names. The
 * collector (daemon/helper/collector/link.h) opens and reads the files; ptd's descriptors only
 * stand for them (O_PATH).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct collectorlink;
struct jitfiles;
struct record_mmap2;
struct share;

/*
 * Number of jitdumps, and of processes without one, that are remembered. Each may take a
 * descriptor. If there are more, processes without a jitdump are forgotten first, and of these the
 * ones that have ended. A process with a jitdump may then replace one that has ended, or the one
 * that mapped nothing for the longest time: one of the user with the most processes, if they have
 * more than their share (daemon/share/share.h).
 */
#define JITFILES_MAX          256u
#define JITFILES_GIVEN_UP_MAX 1024u

/* One file, as it is at one moment. */
struct jitfile {
	uint32_t pid;
	uid_t uid; /* of the process; of those that were forgotten not known */
	bool is_dump;
	int fd; /* stands for the file (O_PATH); -1: refused */
	uint64_t size;
	char *path;         /* by which a jitdump was mapped; owned */
	uint64_t since;     /* time of the record of a jitdump's first mapping, in ns */
	const char *reason; /* why it was refused: a constant */
};

/* What a process is, and what its record says of the file. */
struct jitfile_claim {
	const char *path;
	uint32_t pid;
	uid_t uid;
	bool is_map;     /* the path counts only if the process has ended */
	bool must_match; /* device and inode are known */
	uint32_t maj, min;
	uint64_t ino;
};

struct jitfile_found {
	int fd; /* only stands for the file (O_PATH); the caller's */
	uint64_t dev, ino, size;
};

/*
 * Find the file that is claimed to be a JIT compiler's.
 *
 * Return: 0; -ENOENT if there is none; -EPERM if the file is refused, and @reterr_reason, a
 *         constant, says why; or another negative errno of collectorlink_ask().
 */
_must_check_ int jitfile_open(struct collectorlink *link, const struct jitfile_claim *claim,
			      struct jitfile_found *ret_found, const char **reterr_reason);

/* Make an empty list. @is_claimed: programs write the records, not the kernel. The collector's
 * socket is in @runtime_dir. Return: 0, or negative errno. */
_must_check_ int jitfiles_new(bool is_claimed, const char *runtime_dir,
			      struct jitfiles **ret_files);
struct jitfiles *jitfiles_free(struct jitfiles *files);

DEFINE_CLEANUP(struct jitfiles *, jitfiles_free);

/* Get a copy of the account of processes with a jitdump. */
void jitfiles_get_share(const struct jitfiles *files, struct share *ret_share);

/* Who started a process, should it have ended. */
struct jitfile_user {
	uid_t uid;
	bool is_known; /* otherwise it counts as root's */
};

/* Note that a process mapped something executable at @time (ns). Return: whether it is a jitdump.
 */
bool jitfiles_add(struct jitfiles *files, const struct record_mmap2 *mmap, uint64_t time,
		  const struct jitfile_user *user);

/* Note that process @pid was forked by @parent, whose code it has. @user: as above. */
void jitfiles_fork(struct jitfiles *files, uint32_t pid, uint32_t parent,
		   const struct jitfile_user *user);

/* List the files of the remembered processes, with descriptors of the caller's own; and, as
 * refused, those of the last JITFILES_GIVEN_UP_MAX processes that were forgotten. Return: 0, or
 * -ENOMEM. */
_must_check_ int jitfiles_list(struct jitfiles *files, struct jitfile **ret_list, size_t *ret_n);

/* Return: whether @list has a jitdump that the process of the record mapped by its path. */
bool jitfiles_has_dump(const struct jitfile *list, size_t n, const struct record_mmap2 *mmap);

void jitfiles_list_free(struct jitfile *list, size_t n);
