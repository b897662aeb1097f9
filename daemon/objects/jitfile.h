/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JIT file
 *
 * The files in which JIT compilers note the code that they made: a jitdump, which the process maps
 * to announce it, or else /tmp/perf-PID.map. A jitdump is opened as soon as the record of its
 * mapping is seen, since it may be unlinked later. Each snapshot copies as much as the file has at
 * that time.
 *
 * A record is only a claim, and other users may control where a path leads. So a file is accepted
 * only if it is regular, not a symbolic link, and owned by the user of the process; and a jitdump
 * only if the process has it mapped. The collector (daemon/collector/link.h) opens and reads the
 * files; ptd's descriptors only stand for them (O_PATH).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct claims;
struct collectorlink;
struct jitfiles;
struct record_mmap2;
struct share;

/*
 * Number of processes that are remembered, each of which may take a descriptor. If there are more,
 * processes without a jitdump are forgotten first, and of these the ones that have ended. A process
 * with a jitdump may then replace one that has ended, or the one that mapped nothing for the
 * longest time: one of the user with the most processes, if he has more than his share
 * (daemon/share/share.h).
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
	const char *reason; /* why it was refused: a constant */
};

/* What a process is, and what its record says of the file. */
struct jitfile_claim {
	const char *path;
	uint32_t pid;
	uid_t uid;
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

/* Make an empty list. @claims says who writes the records, and is copied; the collector's socket is
 * in @runtime_dir. Return: 0, or negative errno. */
_must_check_ int jitfiles_new(const struct claims *claims, const char *runtime_dir,
			      struct jitfiles **ret_files);
struct jitfiles *jitfiles_free(struct jitfiles *files);

DEFINE_CLEANUP(struct jitfiles *, jitfiles_free);

/* Get a copy of the account of processes with a jitdump. */
void jitfiles_get_share(const struct jitfiles *files, struct share *ret_share);

/* Note that a process mapped something executable. */
void jitfiles_add(struct jitfiles *files, const struct record_mmap2 *mmap);

/* List the files of the remembered processes, with descriptors of the caller's own; and, as
 * refused, those of the last JITFILES_GIVEN_UP_MAX processes that were forgotten. Return: 0, or
 * -ENOMEM. */
_must_check_ int jitfiles_list(struct jitfiles *files, struct jitfile **ret_list, size_t *ret_n);
void jitfiles_list_free(struct jitfile *list, size_t n);
