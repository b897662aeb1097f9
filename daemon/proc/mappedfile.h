/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapped file
 *
 * Opens the file that a process has mapped. The file may have been deleted, be in another mount
 * namespace, or never have had a name.
 *
 * The file is found through the process's mapping that has the same byte of a file at the same
 * address as the record says. Start and end may differ, because the kernel merges mappings, and so
 * may the permission, because memory that QEMU maps for a program is executable for that program
 * only.
 *
 * If there is no such mapping, the path leads to a candidate. Users who can write or mount there
 * decide what is at the path, so the candidate is opened without side effects, and is accepted only
 * if it is a regular file; if it is the mapped one by its build-id or, if that is not known, by its
 * inode; and if the process may read it, or the kernel says that the process has it mapped. Records
 * of the software source are written by the recorded programs, which could name any process and any
 * file: then everybody has to be allowed to read the file at the path.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/base.h"
#include "util/buildid.h"

/* The process that, by a record, has the file mapped. */
struct mappedfile_process {
	int pid_fd;    /* /proc/PID; -1: the process has ended */
	bool is_true;  /* the kernel says that the process has the file mapped */
	bool has_user; /* it is known who started the process: */
	uid_t user;
};

/* The mapping, as a record or a line of /proc/PID/maps describes it. */
struct mappedfile {
	uint64_t start, end;
	uint64_t offset; /* of start, in the file */
	const char *path;
	struct buildid build_id; /* size 0: not known */
	uint64_t dev, ino;       /* 0: not known. Some file systems show another device in stat() */
};

/*
 * Find the file of a mapping.
 *
 * @verify: compare the build-id if it is known; that opens and reads files, which may take any
 *          time. Otherwise no file is opened, and it may be the wrong one if only the build-id
 *          tells
 *
 * Return: 0, @ret_st, and a descriptor that only stands for the file (O_PATH), which is the
 *         caller's; -ESTALE if another file was found than the mapped one; -ENOEXEC if it is no
 *         regular file; -EACCES if the process may not read the file at the path; or another
 *         negative errno.
 */
_must_check_ int mappedfile_find(const struct mappedfile_process *by, const struct mappedfile *file,
				 bool verify, int *ret_path_fd, struct stat *ret_st);

/* Open the file that @path_fd stands for, for reading. Return: 0 and the descriptor, which is the
 * caller's; or negative errno. */
_must_check_ int mappedfile_reopen(int path_fd, int *ret_fd);

/* Find the file without reading it, and open it. If the build-id is known, the caller has to
 * compare it. Return: 0 and the descriptor, which is the caller's; or as mappedfile_find(). */
_must_check_ int mappedfile_open(const struct mappedfile_process *by, const struct mappedfile *file,
				 int *ret_fd);

/* Find out which file it is without opening it. Return: 0; or as mappedfile_find(). */
_must_check_ int mappedfile_stat(const struct mappedfile_process *by, const struct mappedfile *file,
				 struct stat *ret_st);

/*
 * Find out whether the process @pid_fd (/proc/PID) has the file with @file's device and inode
 * mapped from @file's offset on, whatever its path is. A 32-bit program under QEMU states addresses
 * of its own, which are not the process's; so another address will do.
 *
 * Return: 0 if it has; -ENOENT; or another negative errno, -EPERM or -EACCES if the caller may not
 *         see that.
 */
_must_check_ int mappedfile_is_mapped(int pid_fd, const struct mappedfile *file);
