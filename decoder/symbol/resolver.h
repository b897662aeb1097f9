/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Resolver
 *
 * Gives each symbol that the stream shows its id and its readable name: C++ and Rust names are
 * demangled, and a stub of the procedure linkage table is called "name@plt". The same symbol of a
 * source always has the same id.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

struct resolver;
struct symbol_source;

/* Return: 0 or -ENOMEM. */
_must_check_ int resolver_new(struct resolver **ret_resolver);
struct resolver *resolver_free(struct resolver *resolver);

/*
 * Find the symbol that covers @address in @source, which may be NULL: an object without names.
 *
 * @source must outlive the resolver. @ret_end is the first address above @address for which the
 * answer may differ, so that a caller that walks upwards need not ask for each instruction.
 *
 * Return: 0, with the id PTD_NO_SYMBOL if no symbol covers @address; or -ENOMEM.
 */
_must_check_ int resolver_find(struct resolver *resolver, struct symbol_source *source,
			       uint64_t address, uint32_t *ret_symbol, uint64_t *ret_end);

/*
 * Return: all symbols found so far, by id; [0] stands for no symbol and has an empty name. The
 *         array and the symbols stay where they are; if more are found, another array may have
 *         them.
 */
const struct ptd_symbol *const *resolver_symbols(const struct resolver *resolver, size_t *ret_n);

DEFINE_CLEANUP(struct resolver *, resolver_free);
