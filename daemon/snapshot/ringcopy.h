/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ringcopy
 *
 * The rings of a frozen source, copied by several threads at once: however many CPUs there are,
 * their writers go on, and what is copied late is overwritten.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/base.h"

struct cpucopy;
struct scope;
struct source;

struct ringcopy {
	/* Borrowed. */
	struct source *source;
	struct cpucopy *cpus; /* source->n_cpus of them */
	const struct scope *scope;
	const atomic_bool *cancel; /* may be NULL */

	/* ringcopy_prepare() sets these. */
	uint64_t bytes_max; /* of PT that may be in memory before it is written */
	uint64_t large_max; /* of it, that are to be in large pages */
};

/*
 * To be called before the freeze: have memory ready for what will be copied, as much as may be in
 * memory at once. Getting it later takes time, while the writers go on; and where the kernel is
 * traced, too, getting it is itself written to the rings, so it is large pages as long as there are
 * some to spare. Without memory it is gotten later all the same.
 */
void ringcopy_prepare(struct ringcopy *ringcopy);

/*
 * Copy the rings of CPUs from @first on, as many as may be in memory, one at least; @ret_end is the
 * first that was not copied. PT of all of them comes first: it is overwritten much faster than the
 * switches are.
 *
 * Return: 0; -ECANCELED; or negative errno.
 */
_must_check_ int ringcopy_some(const struct ringcopy *ringcopy, uint32_t first, uint32_t *ret_end);
