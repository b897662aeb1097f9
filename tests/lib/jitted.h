/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JIT code
 *
 * Code that is in no mapped file: the jitdumps in a snapshot's DIR/jit, and the memory in DIR/mem.
 * Only tests use this reader, which shares no code with the decoder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct jitted;

/* Read the JIT code in the snapshot @dir. Return: 0 or -ENOMEM. */
_must_check_ int jitted_new(const char *dir, struct jitted **ret_jitted);
struct jitted *jitted_free(struct jitted *jitted);

/*
 * Check whether process @pid can have had the @size bytes at @bytes at @address and @time. Each
 * byte must be that of the newest code noted for its address (or, where none has been noted yet, of
 * the first code noted later), or that of the memory at the snapshot: a compiler may patch its code
 * without noting it.
 *
 * Return: whether it can; if so, [@from, @to) is reduced to the times for which that holds.
 */
bool jitted_have(const struct jitted *jitted, uint32_t pid, uint64_t time, uint64_t address,
		 const uint8_t *bytes, size_t size, uint64_t *from, uint64_t *to);

DEFINE_CLEANUP(struct jitted *, jitted_free);
