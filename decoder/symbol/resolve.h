/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Resolve
 *
 * From (object, address) to a symbol. An object's symbols are read when it is first asked for:
 * .symtab of the object or of its debug file, .dynsym, and what else its file tells (PLT stubs as
 * "name@plt").
 * Symbols are interned: the same one always has the same id.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "ptd/record.h"

struct debugfile_places;
struct resolver;

/* @places is copied; NULL: do not look for debug files. Return: 0 or -ENOMEM. */
_must_check_ int resolver_new(const struct debugfile_places *places,
			      struct resolver **ret_resolver);
struct resolver *resolver_free(struct resolver *resolver);

/*
 * The symbol that covers @address (an ELF virtual address of @object), and where it ends.
 *
 * @ret_end is the first address above @address for which the answer may differ, so that a caller
 * that walks upwards need not ask for each instruction.
 *
 * Return: 0, with PTD_NO_SYMBOL if none covers it; -ENOMEM.
 */
_must_check_ int resolver_find(struct resolver *resolver, const struct object *object,
			       uint64_t address, uint32_t *ret_symbol, uint64_t *ret_end);

/* All symbols met so far by id; [0] is no symbol, with an empty name. The array moves when one is
 * added; they themselves do not. */
const struct ptd_symbol *const *resolver_symbols(const struct resolver *resolver, size_t *ret_n);

DEFINE_CLEANUP(struct resolver *, resolver_free);
