/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel code
 *
 * What a snapshot of a traced kernel needs of it: its code, and its modules', as it is in memory
 * now (the file it was loaded from has other bytes: it is patched as it starts and while it runs),
 * and the names of its functions. Laid out as `perf record --kcore` has it (ptd/snapshot.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "record/codec.h"

/* What was written. */
struct kernelcode {
	uint64_t bytes;
	size_t n_left_out; /* modules, or pieces of other code, for which there was no room */
};

/*
 * Can it be had?
 *
 * @proc_fd: the folder /proc; borrowed
 *
 * Return: 0; -EPERM or -ENODATA, and @reterr_why, a constant, says what is missing and what mends
 *         it; or another negative errno, with NULL.
 */
_must_check_ int kernelcode_check(int proc_fd, const char **reterr_why);

/*
 * Write kcore, kallsyms and modules into the folder @dir_fd, and give @put the records that say
 * where the kernel and its modules are.
 *
 * Return: 0 and what was written; or as above, or the negative errno of @put.
 */
_must_check_ int kernelcode_write(int proc_fd, int dir_fd, record_put_fn put, void *userdata,
				  struct kernelcode *ret_code, const char **reterr_why);
