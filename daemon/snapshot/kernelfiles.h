/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel files
 *
 * Has the collector write what a snapshot of a traced kernel needs of it: its code, which is in
 * /proc/kcore, and its names (daemon/helper/collector/kernelcode.h). ptd may read neither.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/base.h"
#include "util/perf/codec.h"

/* Everything is borrowed. */
struct kernelfiles_request {
	const char *runtime_dir;   /* where the collector's socket is */
	int dir_fd;                /* the folder that the files kcore, kallsyms and modules go to */
	const atomic_bool *cancel; /* the copy gives up once this is true; may be NULL */

	/* Is given the records that say where the kernel and its modules are. */
	record_put_fn put;
	void *userdata;
};

/* What was written. */
struct kernelfiles {
	uint64_t bytes;
	uint64_t bytes_unreadable; /* of memory that should be code, and that kcore does not have */
	uint64_t n_left_out;       /* modules, or runs of other code, for which there was no room */
};

enum {
	KERNELFILES_NONE = 1, /* they cannot be had */
};

/*
 * Find out whether the collector can read the code. One that is being started is waited for.
 *
 * Return: 0; KERNELFILES_NONE, and @reterr_why, a constant, says what is missing; or -ENOMEM or
 *         -ENAMETOOLONG.
 */
_must_check_ int kernelfiles_check(const char *runtime_dir, const char **reterr_why);

/* Have the files written. Return: as kernelfiles_check(), but what was written of them is left if
 * they cannot be had; -ECANCELED; the negative errno of put(); or another negative errno if the
 * disk does not take them. */
_must_check_ int kernelfiles_write(const struct kernelfiles_request *request,
				   struct kernelfiles *ret_files, const char **reterr_why);

/*
 * Pass on the records of the collector, who may be mistaken.
 *
 * Return: 0; -EBADMSG, before any is passed on, if one is no MMAP record of the kernel; or the
 *         negative errno of put().
 */
_must_check_ int kernelfiles_put_records(const uint8_t *bytes, size_t size, record_put_fn put,
					 void *userdata);
