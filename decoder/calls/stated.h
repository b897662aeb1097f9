/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stated calls
 *
 * Follows the calls that an input states, in the place of instructions. They are taken as they are,
 * but what the call layer promises holds of them, too: a stack nests, and all that was entered is
 * left. So, where calls are missing:
 *
 * - A function that is left, and is open, but is not the innermost one: an exception or longjmp()
 *   went past those within it, or their ends were not recorded. They are left first, by unwinding.
 * - A function that is left, and is not open, was entered before the first call, or before a gap.
 *   It is below all that is open, which is left first.
 */

#include <stddef.h>

#include "base/base.h"
#include "ptd/record.h"

struct call_world;
struct callthread;

/*
 * Take the stated calls of @batch from @at on, which then says how far, to before @last, or until
 * there are enough calls.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int stated_take(struct callthread *thread, struct call_world *world,
			     const struct ptd_batch *batch, size_t *at, size_t last);
