/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel code
 *
 * Copies what a snapshot of a traced kernel needs of it: the code of the kernel, its modules and
 * its BPF programs as it is in memory now, and the names of the functions. The files that they were
 * loaded from would not do, because the kernel patches its code as it starts and while it runs. The
 * copy is laid out as `perf record --kcore` does it (ptd/snapshot.h).
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "record/codec.h"

/* Everything is borrowed. */
struct kernelcode_request {
	int proc_fd;               /* the folder /proc */
	int dir_fd;                /* the folder that the files kcore, kallsyms and modules go to */
	const atomic_bool *cancel; /* the copy gives up once this is true; may be NULL */

	/* Is given the records that say where the kernel and its modules are. */
	record_put_fn put;
	void *userdata;
};

/* What was written. */
struct kernelcode {
	uint64_t bytes;
	uint64_t
	    bytes_unreadable; /* of memory that should be code, and that has no bytes in kcore */
	size_t n_left_out;    /* modules, or pieces of other code, for which there was no room */
};

/*
 * Find out whether the code of the kernel can be read.
 *
 * @proc_fd: the folder /proc; borrowed
 *
 * Return: 0; -EPERM or -ENODATA, and @reterr_why, a constant, says what is missing and what mends
 *         it; or another negative errno, with NULL.
 */
_must_check_ int kernelcode_check(int proc_fd, const char **reterr_why);

/* Copy it. Return: 0; as kernelcode_check(); -ECANCELED; or the negative errno of put(). */
_must_check_ int kernelcode_write(const struct kernelcode_request *request,
				  struct kernelcode *ret_code, const char **reterr_why);
