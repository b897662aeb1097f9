/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ringcopy
 *
 * The rings of a frozen source, copied by several threads at once: however many CPUs there are, their
 * writers go on, and what is copied late is overwritten.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/base.h"

struct cpucopy;
struct scope;
struct source;

/* All of it is borrowed. */
struct ringcopy {
	struct source *source;
	struct cpucopy *cpus; /* source->n_cpus of them */
	const struct scope *scope;
	const atomic_bool *cancel; /* may be NULL */
};

/*
 * Copy the rings of CPUs from @first on, as many as there is memory for, one at least; @ret_end is the
 * first that was not copied. PT of all of them comes first: it is overwritten much faster than the
 * switches are.
 *
 * Return: 0; -ECANCELED; or negative errno.
 */
_must_check_ int ringcopy_some(const struct ringcopy *ringcopy, uint32_t first, uint32_t *ret_end);
