/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapped file
 *
 * Opens the file that a process has mapped, which may have been deleted, lie in another mount
 * namespace, or never have had a name at all.
 *
 * The mapping of the process leads to it. It need not be the one that a record tells of: mappings
 * are merged, and what QEMU maps for the program that it runs is executable for that program only.
 * So it is the one that has the same byte of a file at the same address.
 *
 * Behind a path, whoever may write or mount there decides what is found. So a path leads only to a
 * candidate, which is opened without effect. It is taken if it is regular and the one that was
 * mapped, as far as is known: by its build-id, or else by its inode. And it is one that the process
 * (daemon/proc/claimant.h) may read, or one that the kernel says it has mapped.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/base.h"
#include "util/buildid.h"

struct claimant;

/* What a record, or a line of /proc/PID/maps, says of it. */
struct mappedfile {
	uint64_t start, end;
	uint64_t offset; /* of start, in the file */
	const char *path;
	struct buildid build_id; /* size 0: not known */
	uint64_t dev, ino; /* 0: not known. Not all file systems show the same device in both */
};

/*
 * Open the file of a mapping. Nothing is read of it, so that no disk is waited for: if the build-id
 * is known, it may be the wrong file, and whoever goes on with it has to look.
 *
 * Return: 0 and the descriptor, the caller's; -ESTALE if what was found is not what was mapped;
 *         -ENOEXEC if it is no regular file; -EACCES if the process may not read what is at the
 *         path; or another negative errno.
 */
_must_check_ int mappedfile_open(const struct claimant *by, const struct mappedfile *file,
				 int *ret_fd);

/* The same, but that it has the build-id, if that is known; not for the event loop. */
_must_check_ int mappedfile_open_verified(const struct claimant *by, const struct mappedfile *file,
					  int *ret_fd);

/*
 * Find out which file it is without opening it: it may be another than mappedfile_open() takes if
 * only the build-id would tell.
 *
 * Return: 0; or negative errno, as above.
 */
_must_check_ int mappedfile_stat(const struct claimant *by, const struct mappedfile *file,
				 struct stat *ret_st);

/*
 * Find out which file process @pid_fd (/proc/PID) has mapped there, whatever its path is.
 *
 * Return: 0; or negative errno: -EPERM or -EACCES if that may not be seen.
 */
_must_check_ int mappedfile_stat_mapping(int pid_fd, const struct mappedfile *file,
					 struct stat *ret_st);
