/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Logged calls
 *
 * Follows the calls that a program logged, in the place of instructions. They are taken as they
 * are, but what the call layer promises holds of them, too: a stack nests, and all that was entered
 * is left. So, where calls are missing:
 *
 * - A function that is left, and is open, but is not the innermost one: an exception or longjmp()
 *   went past those within it, or their ends were not recorded. They are left first, by unwinding.
 * - A function that is left, and is not open, was entered before the first call, or before a gap.
 *   It is below all that is open, which is left first.
 */

#include <stddef.h>

#include "base/base.h"
#include "ptd/calls.h"

struct call_world;
struct callthread;

/*
 * Take the calls of @logged from @at on, which then says how far, to before @last, or until
 * there are enough calls.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int logged_take(struct callthread *thread, struct call_world *world,
			     const struct ptd_logged *logged, size_t *at, size_t last);
