/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Original
 *
 * The file that a record says is mapped, before it is copied. This module finds the file, and can
 * say later whether the file at the path is still the same one. A record is only a claim: a file
 * is accepted if it is a regular ELF file, has the build-id in the record, and the process in the
 * record has it mapped or may read it (daemon/proc/mappedfile.h).
 *
 * The vDSO has no file. The kernel maps the same vDSO into all 64-bit x86 programs, so a copy of
 * the daemon's own is used.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct claims;
struct record_mmap2;

/* The identity of a file. A file that was written to, or replaced, has another identity. */
struct original {
	bool found;
	uid_t uid; /* its owner */
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

/* Find out which file is mapped without opening it, and without checking whether it can be copied.
 * The file is not found if, for instance, the process has ended. */
struct original original_look(const struct record_mmap2 *mmap);

/* Return: whether both are the same file; false if one was not found. */
bool original_equal(const struct original *a, const struct original *b);

/*
 * Open the mapped file, without comparing its build-id with that in the record. To be called in any
 * thread.
 *
 * @claims: who wrote the record; NULL: the kernel
 *
 * Return: 0 and the descriptor, which is the caller's; -ESTALE if another file was found than the
 *         mapped one; -ENOEXEC if it is no regular ELF file; -EACCES if the process may not read
 *         it; or another negative errno.
 */
_must_check_ int original_open(const struct claims *claims, const struct record_mmap2 *mmap,
			       int *ret_fd, struct original *ret_original);

/* Do the same, and compare the build-id. That reads files, so it is not to be called in the event
 * loop. */
_must_check_ int original_open_verified(const struct claims *claims,
					const struct record_mmap2 *mmap, int *ret_fd,
					struct original *ret_original);
