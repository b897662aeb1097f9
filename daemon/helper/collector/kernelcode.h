/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel code
 *
 * Copies what a snapshot of a traced kernel needs of it: the names of its functions; and the code
 * of the kernel, its modules and its BPF programs as it is in memory now. The files that they were
 * loaded from would not do, because the kernel patches its code as it starts and while it runs. The
 * copies are laid out as `perf record --kcore` does it (ptd/snapshot.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/proc/kernelmap.h"

/* What was copied. */
struct kernelcode {
	uint64_t bytes;            /* of text, or of memory */
	uint64_t bytes_unreadable; /* of memory that should be code, and that kcore does not have */
	size_t n_left_out;         /* modules, or runs of other code, for which there was no room */
};

/*
 * Copy the names.
 *
 * @proc_fd: the folder /proc; borrowed
 * @names_fd: where the lines of /proc/kallsyms that name functions are written; borrowed
 * @modules_fd: where those of /proc/modules are written; borrowed
 * @size_max: bytes that are written at most
 *
 * Return: 0, and @ret_map is initialized: where the code is; or @ret_lack says why that cannot be
 *         had, and the map is empty; -EFBIG; or another negative errno.
 */
_must_check_ int kernelcode_copy_names(int proc_fd, int names_fd, int modules_fd, uint64_t size_max,
				       struct kernelmap *ret_map, struct kernelcode *ret_code,
				       enum kernellack *ret_lack);

/*
 * Copy the code that is in the map.
 *
 * @code_fd: where an ELF file is written; borrowed, as the next
 * @records_fd: where records are written that say where the kernel and its modules are
 * @size_max: bytes of memory that are copied at most; of more, some are left out
 *
 * Return: 0, also if @ret_lack says why the code cannot be had; or negative errno.
 */
_must_check_ int kernelcode_copy(int proc_fd, const struct kernelmap *map, int code_fd,
				 int records_fd, uint64_t size_max, struct kernelcode *ret_code,
				 enum kernellack *ret_lack);

/* Find out whether the names and the code can be had. Return: 0 and @ret_lack; or negative
 * errno. */
_must_check_ int kernelcode_check(int proc_fd, enum kernellack *ret_lack);
