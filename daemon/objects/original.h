/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Original
 *
 * The file that a record says is mapped, before it is copied: how it is found, and whether it is
 * the one that was found before. A record is only a claim: a file is taken for it if the process
 * that the record names has it mapped or may read it (daemon/proc/mappedfile.h), if it is a regular
 * ELF file, and has the build-id that the record states.
 *
 * The vDSO has no file. The kernel maps the same one into all programs that are for 64-bit x86: our
 * own stands for it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct claims;
struct record_mmap2;

/* Which file it is. A file that is written to, or that took another's place, is another. */
struct original {
	bool found;
	uid_t uid; /* its owner */
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

/* Find out which file is mapped without opening it; whether it is one that can be kept is not seen.
 * Not found: the process is gone, for one. */
struct original original_look(const struct record_mmap2 *mmap);

/* Two that were not found are not the same. */
bool original_equal(const struct original *a, const struct original *b);

/*
 * Open what is mapped. In any thread. Whether it has the build-id that the record states is not
 * looked at.
 *
 * @claims: who wrote the record; NULL: the kernel
 *
 * Return: 0 and the descriptor, which is the caller's; -ESTALE if what was found is not what was
 *         mapped; -ENOEXEC if it is no regular ELF file; -EACCES if the process may not read it; or
 *         another negative errno.
 */
_must_check_ int original_open(const struct claims *claims, const struct record_mmap2 *mmap,
			       int *ret_fd, struct original *ret_original);

/* The same, but that it has that build-id; for which files are read, so not in the event loop. */
_must_check_ int original_open_verified(const struct claims *claims,
					const struct record_mmap2 *mmap, int *ret_fd,
					struct original *ret_original);
