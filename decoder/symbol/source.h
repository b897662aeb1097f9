/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Symbol source
 *
 * Answers which name the code at an address of one object has. The names of an ELF file are in its
 * symbol tables, those of JIT code in a jitdump or a perf map, those of the kernel in kallsyms: the
 * maker of an object knows which, and gives it a source of that kind. A caller that asks for a name
 * does not need to know. Where no symbol is, a source may still know that a function is there, and
 * makes a name for it. A source may also know where the code stands in the program's source code.
 *
 * A source is embedded in what it reads from, which sets the operations. It reads its names when it
 * is asked for the first time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/symtab.h"
#include "util/vec.h"

struct ehframe_entry;
struct ptd_inlined;
struct ptd_position;
struct ptd_line_table;
struct symbol_source;

struct symbol_source_ops {
	/*
	 * Add all names of the object to @symtab. They may be borrowed from what @source reads.
	 *
	 * Return: 0; -ENOMEM; -E2BIG from symtab_add(): then the names added so far are used.
	 */
	int (*read)(struct symbol_source *source, struct symtab *symtab);

	/*
	 * Find a name, as symbol_source_find() does: of a source that has a table of its own, and
	 * none of the other operations. NULL: all names are read.
	 */
	int (*find)(struct symbol_source *source, uint64_t address,
		    const struct symtab_symbol **ret_symbol, uint64_t *ret_end);

	/*
	 * Find the function around @address by what else is known of the code; see
	 * symtab_bounds_fn. This and the next operation are NULL if nothing else is known.
	 */
	bool (*bounds)(struct symbol_source *source, uint64_t address, uint64_t *ret_start,
		       uint64_t *ret_end);

	/*
	 * Make a name for the function at @address, which has none in the symbol table. The symbol
	 * belongs to @source, and is the same for the same address.
	 *
	 * Return: 0 or -ENOMEM.
	 */
	int (*name)(struct symbol_source *source, uint64_t address,
		    const struct symtab_symbol **ret_symbol);

	/*
	 * Find how the function around @address is unwound, an address as above. The names must
	 * have been read. NULL: that is not known of any function.
	 *
	 * Return: whether it is known.
	 */
	bool (*entry)(struct symbol_source *source, uint64_t address,
		      struct ehframe_entry *ret_entry);

	/*
	 * Find the source positions of the code at @address, as ptd_decoder_positions() does. The
	 * thread may be another one than that which calls the other operations, and this one may be
	 * called at the same time as they are. NULL: no positions are known.
	 *
	 * Return: how many there are; or -ENOMEM.
	 */
	int (*positions)(struct symbol_source *source, uint64_t address,
			 struct ptd_position *ret_positions);

	/* Find the innermost function that was inlined at @address, as ptd_decoder_inlined() does;
	 * likewise. */
	int (*inlined)(struct symbol_source *source, uint64_t address,
		       const struct ptd_inlined **ret_inlined, uint64_t *ret_end);

	/* Get the line tables, as ptd_decoder_lines() does; likewise. */
	int (*lines)(struct symbol_source *source, struct ptd_line_table *ret_table);
};

struct symbol_source {
	const struct symbol_source_ops *ops;
	struct symtab symtab; /* empty until is_read */
	bool is_read;
};

/*
 * Find the symbol that covers @address, and where it ends.
 *
 * @ret_symbol stays valid as long as the source; it is NULL if no symbol covers @address. @ret_end
 * is the first address above @address for which the answer may differ.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int symbol_source_find(struct symbol_source *source, uint64_t address,
				    const struct symtab_symbol **ret_symbol, uint64_t *ret_end);

/* Free the names that were read. */
void symbol_source_deinit(struct symbol_source *source);

/* --- names that the decoder puts together itself ---------------------------------------------- */

/* Names that are added one by one, before the first one is asked for. */
struct symbol_list {
	struct symbol_source source;
	VEC(struct symtab_symbol) symbols;
};

void symbol_list_init(struct symbol_list *list);

/*
 * Name the @size bytes at @address, which end below 2^64. @name, of @name_size bytes, must outlive
 * the list, and so must @jit, which may be NULL: what a jitdump says of the code.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int symbol_list_add(struct symbol_list *list, uint64_t address, uint64_t size,
				 const char *name, uint16_t name_size,
				 const struct ptd_jit_note *jit);
void symbol_list_deinit(struct symbol_list *list);
