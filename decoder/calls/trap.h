/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trap
 *
 * A handler of exceptions of OCaml. Its code pushes the handler's address and links it to the
 * handler outside it, and pops both at the end of the expression. Raising an exception goes to the
 * innermost handler, in a function that may be open several times. So that it is known in which
 * activation, traps are kept like frames.
 *
 * Since OCaml 4.10 the link is in the domain's state, to which %r14 points; before, %r14
 * was the link.
 */

#include <stddef.h>
#include <stdint.h>

#include "ptd/record.h"

enum trap_op {
	TRAP_NONE,
	TRAP_PUSH,
	TRAP_POP,
	TRAP_RAISE,
};

/*
 * Return: what instruction @i of @block, with those before it, does with traps. Of TRAP_PUSH
 *         @ret_handler is where the handler is, relative to the block.
 */
enum trap_op trap_op_at(const struct ptd_block *block, size_t i, int64_t *ret_handler);
