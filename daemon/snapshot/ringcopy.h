/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ring copy
 *
 * Copies the rings of a source whose rings are held. Several threads copy different CPUs at the
 * same time, because the writers go on, and what is copied late has been overwritten.
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
	uint64_t large_max; /* of this, bytes that shall be in large pages */
};

/*
 * Before the rings are held: allocate and fault in memory for the copies, as much as may be in
 * memory at once. Faults during the copying would take time while the writers go on. Where the
 * kernel is traced, too, the faults would also fill the rings; therefore large pages are used as
 * long as enough of them are free. Memory that cannot be had now is allocated during the copying.
 */
void ringcopy_prepare(struct ringcopy *ringcopy);

/*
 * Copy the rings of CPUs from @first on: as many as may be in memory at once, but at least one. The
 * PT of all of them is copied first, because it is overwritten much faster than switch records.
 *
 * Return: 0, and @ret_end is the first CPU that was not copied; -ECANCELED; or negative errno.
 */
_must_check_ int ringcopy_some(const struct ringcopy *ringcopy, uint32_t first, uint32_t *ret_end);
