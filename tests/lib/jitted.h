/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitted
 *
 * Code that is in no file that was mapped: what JIT compilers noted in a snapshot's DIR/jit, and
 * the memory in DIR/mem. Read for the tests alone, without the decoder's code.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct jitted;

/* Read what the snapshot @dir holds of it. Return: 0 or -ENOMEM. */
_must_check_ int jitted_new(const char *dir, struct jitted **ret_jitted);
struct jitted *jitted_free(struct jitted *jitted);

/*
 * Can the @size bytes at @bytes have been process @pid's at @address and @time? Each must be that
 * of the newest code noted for that place (where there is none yet, of the first one later), or
 * what the memory had at the snapshot: a compiler may patch its code without a note, before or
 * after.
 *
 * Return: whether; and if so, for which times that holds, within @from and @to (exclusive).
 */
bool jitted_have(const struct jitted *jitted, uint32_t pid, uint64_t time, uint64_t address,
		 const uint8_t *bytes, size_t size, uint64_t *from, uint64_t *to);

DEFINE_CLEANUP(struct jitted *, jitted_free);
