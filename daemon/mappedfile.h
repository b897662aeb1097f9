/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapped file
 *
 * Opens the file that a process has mapped, which may have been deleted, lie in another mount
 * namespace, or never have had a name at all.
 *
 * What is at a path is decided by whoever may write there, or may mount there; so a path leads to a
 * candidate only, which is opened without effect, and is taken if it is regular and the one that
 * was mapped, as far as is known: by its build-id, or else by its inode.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/base.h"
#include "decoder/util/buildid.h"

/* What a record, or a line of /proc/PID/maps, says of it. */
struct mappedfile {
	uint64_t start, end;
	const char *path;
	struct buildid build_id; /* size 0: not known */
	uint64_t ino; /* 0: not known. Not all file systems show the same device in both */
};

/*
 * Open the file of a mapping.
 *
 * @pid_fd: the folder /proc/PID; negative: the process is gone
 * @ret_build_id: of the file that was opened; may be NULL
 *
 * Return: 0 and the descriptor, the caller's; -ESTALE if what was found is not what was mapped;
 *         -ENOEXEC if it is no regular file; or another negative errno.
 */
_must_check_ int mappedfile_open(int pid_fd, const struct mappedfile *file, int *ret_fd,
				 struct buildid *ret_build_id);

/*
 * Find out which file it is without opening it: it may be another than mappedfile_open() takes if
 * only the build-id would tell.
 *
 * Return: 0; or negative errno, as above.
 */
_must_check_ int mappedfile_stat(int pid_fd, const struct mappedfile *file, struct stat *ret_st);
