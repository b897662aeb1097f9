/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Symtab
 *
 * The symbols of one object, by address. They are added in any order, from as many sources as
 * there are, and then sealed: of several names for the same code one stays, a symbol without a size
 * reaches to the next one, and where symbols overlap the innermost counts. Names are borrowed: they
 * point into the object's bytes.
 *
 * The name that stays is the one that addr2line gives: a function's before others, then the one
 * that was added first. That is often a local one where perf would show a global one; but users ask
 * addr2line and gdb about the addresses that they find here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define SYMTAB_NONE UINT32_MAX

/* What is said to lie at the address: of several names, one with a lower rank wins. */
enum symtab_rank {
	SYMTAB_FUNCTION,
	SYMTAB_IFUNC, /* a function that chooses one of several at start */
	SYMTAB_LABEL, /* code that is not said to be a function */
};

struct symtab_symbol {
	uint64_t address;
	uint64_t size;  /* 0: it does not say */
	uint64_t limit; /* end of its section: it reaches no further */
	const char *name;
	uint16_t name_size;
	uint8_t rank;   /* enum symtab_rank */
	bool plt;       /* a stub that jumps to the function of this name */
	uint32_t order; /* set by symtab_add() */
};

struct symtab_range {
	uint64_t start;  /* up to that of the next range */
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
 * Return: 0; -ENOMEM; -E2BIG if there are too many.
 */
_must_check_ int symtab_add(struct symtab *symtab, const struct symtab_symbol *symbol);

/*
 * By what name others refer to the function at @address: the first indirect one of the symbols
 * added so far that begin there, or else the first of all; NULL if there is none.
 */
const struct symtab_symbol *symtab_at(struct symtab *symtab, uint64_t address);

/* Nothing is added after this. Return: 0 or -ENOMEM. */
_must_check_ int symtab_seal(struct symtab *symtab);

/*
 * The index of the symbol that covers @address, or SYMTAB_NONE; @ret_end is the first address above
 * for which the answer differs.
 */
uint32_t symtab_find(const struct symtab *symtab, uint64_t address, uint64_t *ret_end);
