/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Symbol table
 *
 * The symbols of one object, by address. Symbols are added in any order, and then the table is
 * sealed: of several names for the same code one is kept, a symbol without a size reaches to the
 * end of its function if that is known, or else to the next symbol, and where symbols overlap, the
 * innermost one counts. Names are borrowed: they point into the bytes that they were read from.
 *
 * The name that is kept is the one that addr2line prints: functions go before other symbols, and
 * then the symbol that was added first wins. Where a function has a local and a global name, this
 * is often the local one, while perf shows the global one; but users ask addr2line and gdb about
 * the addresses that they find in the output.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct ptd_jit_note;

#define SYMTAB_NONE UINT32_MAX

/* The kind of a symbol. Of several names for the same code, one with a lower rank wins. */
enum symtab_rank {
	SYMTAB_FUNCTION,
	SYMTAB_IFUNC, /* an indirect function, which chooses its code at start */
	SYMTAB_LABEL, /* code that is not marked as a function */
};

struct symtab_symbol {
	uint64_t address;
	uint64_t size;  /* 0: not known */
	uint64_t limit; /* the end of its section, beyond which the symbol does not reach */
	const char *name;
	uint16_t name_size;
	uint8_t rank;   /* enum symtab_rank */
	bool plt;       /* a stub of the PLT, which jumps to the function of this name */
	bool unsized;   /* set by symtab_seal(): it had no size, and got one from elsewhere */
	uint32_t order; /* set by symtab_add() */
	const struct ptd_jit_note *jit; /* borrowed; NULL: the code is in no jitdump */
};

struct symtab_range {
	uint64_t start;  /* the range ends where the next one starts */
	uint32_t symbol; /* index into symbols, or SYMTAB_NONE */
};

struct symtab {
	VEC(struct symtab_symbol) symbols;
	VEC(struct symtab_range) ranges;
	bool sorted;
};

void symtab_deinit(struct symtab *symtab);

/*
 * Add a symbol whose address is below its limit.
 *
 * Return: 0; -ENOMEM; -E2BIG if the table is full.
 */
_must_check_ int symtab_add(struct symtab *symtab, const struct symtab_symbol *symbol);

/*
 * Return: the symbol by whose name others refer to the function at @address. Of the symbols added
 *         so far that begin there, that is the first indirect function, or else the first symbol;
 *         NULL if there is none.
 */
const struct symtab_symbol *symtab_at(struct symtab *symtab, uint64_t address);

/*
 * What knows where functions begin and end, whatever their names are.
 *
 * Return: whether a function from @ret_start up to @ret_end is around @address; otherwise there is
 *         none between the two.
 */
typedef bool (*symtab_bounds_fn)(void *userdata, uint64_t address, uint64_t *ret_start,
				 uint64_t *ret_end);

/*
 * Seal the table: no symbol may be added afterwards. @bounds is asked about symbols without a size;
 * NULL: bounds are not known.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int symtab_seal(struct symtab *symtab, symtab_bounds_fn bounds, void *userdata);

/*
 * Find the symbol that covers @address in a sealed table.
 *
 * Return: the index of the symbol, or SYMTAB_NONE; @ret_end is the first address above @address for
 *         which the answer differs.
 */
uint32_t symtab_find(const struct symtab *symtab, uint64_t address, uint64_t *ret_end);
