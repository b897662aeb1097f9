/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitfile
 *
 * The files in which JIT compilers say what code they made: the jitdump that a process maps as a
 * sign of it, or else its /tmp/perf-PID.map. A jitdump is opened as soon as the record of its
 * mapping is seen, since it may be unlinked later, and copied into each snapshot as far as it goes
 * then.
 *
 * A record is only a claim, and a path leads where others let it lead: a file is taken if it is
 * regular, no symbolic link, owned by the process's user and, a jitdump, mapped by the process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct claims;
struct jitfiles;
struct record_mmap2;

/*
 * Processes that are remembered; each may hold a descriptor. When there are more, those without a
 * jitdump go first, and of them the dead; then, for others that have one, the dead; and of these,
 * those that mapped nothing for longest.
 */
#define JITFILES_MAX          256u
#define JITFILES_GIVEN_UP_MAX 1024u

/* One file, as it is at one moment. */
struct jitfile {
	uint32_t pid;
	bool is_dump;
	int fd; /* -1: refused */
	uint64_t size;
	const char *reason; /* why it was refused: a constant */
};

/* What a process is, and what its record says of the file. */
struct jitfile_claim {
	const char *path;
	uid_t uid;
	bool must_match; /* device and inode are known */
	uint32_t maj, min;
	uint64_t ino;
};

/*
 * Open the file that is claimed to be a JIT's.
 *
 * Return: 0; -ENOENT if there is none; -EPERM if it is refused, and @reterr_reason, a constant,
 *         says why; or negative errno.
 */
_must_check_ int jitfile_open(const struct jitfile_claim *claim, int *ret_fd,
			      const char **reterr_reason);

/* @claims: who writes the records; copied. Return: 0, or -ENOMEM. */
_must_check_ int jitfiles_new(const struct claims *claims, struct jitfiles **ret_files);
struct jitfiles *jitfiles_free(struct jitfiles *files);

DEFINE_CLEANUP(struct jitfiles *, jitfiles_free);

/* A process mapped something executable. */
void jitfiles_add(struct jitfiles *files, const struct record_mmap2 *mmap);

/* What there is now, with descriptors of the caller's own; and what was given up, refused, as far
 * back as JITFILES_GIVEN_UP_MAX processes. Return: 0, or -ENOMEM. */
_must_check_ int jitfiles_list(const struct jitfiles *files, struct jitfile **ret_list,
			       size_t *ret_n);
void jitfiles_list_free(struct jitfile *list, size_t n);

enum {
	JITFILE_UNREADABLE = 1,
};

/*
 * Copy the first @size bytes, holes as holes.
 *
 * Return: 0; JITFILE_UNREADABLE and @reterr_error, the negative errno of reading @from; or negative
 *         errno: @to cannot be written.
 */
_must_check_ int jitfile_copy(int from, int to, uint64_t size, int *reterr_error);
