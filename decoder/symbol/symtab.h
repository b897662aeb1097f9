/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Symtab
 *
 * The symbols of one object, by address. They are added in any order, from as many sources as
 * there are, and then sealed: of several names for one address the best stays, a symbol without a
 * size reaches to the next one, and where symbols overlap the innermost counts. Names are borrowed:
 * they point into the object's bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/vec.h"

#define SYMTAB_NONE UINT32_MAX

/* How good a name is: a lower rank wins. Add them up. */
enum {
	SYMTAB_GLOBAL = 0,
	SYMTAB_WEAK = 1,
	SYMTAB_LOCAL = 2,
	SYMTAB_LABEL = 4, /* not said to be a function */
};

struct symtab_symbol {
	uint64_t address;
	uint64_t size;  /* 0: it does not say */
	uint64_t limit; /* end of its section: it reaches no further */
	const char *name;
	uint16_t name_size;
	uint8_t rank;
	bool plt; /* a stub that jumps to the function of this name */
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

/* The best of the symbols added so far that begin at @address; NULL if there is none. */
const struct symtab_symbol *symtab_at(struct symtab *symtab, uint64_t address);

/* Nothing is added after this. Return: 0 or -ENOMEM. */
_must_check_ int symtab_seal(struct symtab *symtab);

/*
 * The index of the symbol that covers @address, or SYMTAB_NONE; @ret_end is the first address above
 * for which the answer differs.
 */
uint32_t symtab_find(const struct symtab *symtab, uint64_t address, uint64_t *ret_end);
