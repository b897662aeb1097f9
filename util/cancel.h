/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Cancel
 *
 * A flag by which one thread asks another to give up what it does.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Return: whether it is to give up; @cancel may be NULL: never. */
static inline bool cancel_asked(const atomic_bool *cancel)
{
	return cancel && atomic_load(cancel);
}
