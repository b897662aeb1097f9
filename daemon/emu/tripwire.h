/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tripwire
 *
 * The conditions on which ptctl takes a snapshot of the recorded process, and how ptctl learns that
 * one holds. A forked child and programs that the process executes have the same conditions.
 *
 * A thread for which a condition holds calls tripwire_pull() with its packets written and its CPU
 * given back, so that the snapshot ends with the thread's last instruction before the condition.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/condition.h"

/* A thread waits for the answer no longer. */
#define TRIPWIRE_PATIENCE_MS 10000

struct tripwire {
	const char
	    *socket; /* name of ptctl's socket in the abstract namespace; NULL: no conditions */
	const char *text; /* the conditions, as in the option of the plugin */
	struct condition conditions[CONDITIONS_MAX];
	size_t n_conditions;
	_Atomic bool is_over; /* ptctl waits for no condition any more */
};

/*
 * Read the conditions from @text, which has CONDITION_SEPARATOR between them. Both strings are
 * borrowed.
 *
 * Return: 0; -EINVAL if one is not a condition; or -ENOMEM.
 */
_must_check_ int tripwire_init(struct tripwire *tripwire, const char *socket, const char *text);

/*
 * Return: the index of the first condition of kind @kind, which is not CONDITION_ENTER, that holds
 *         with @number, plus 1; 0: none holds, or no condition is waited for.
 */
uint32_t tripwire_holds(const struct tripwire *tripwire, enum condition_kind kind, uint32_t number);

/* Tell ptctl of @event, and wait until it has taken a snapshot, or for TRIPWIRE_PATIENCE_MS. */
void tripwire_pull(struct tripwire *tripwire, const struct condition_event *event);
