/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Symbol table of a trace
 *
 * aux/symbols.tsv of a drmemtrace directory: the symbols and objects that markers 101 name by their
 * ids. See ptd-drmemtrace(5).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/vec.h"

/*
 * aux/mappings.tsv of a drmemtrace directory: where processes had mapped files. See
 * ptd-drmemtrace(5).
 */

struct mappingtable_row {
	uint64_t pid;
	const char *object,
	    *build_id;   /* borrowed from the text, as the table of symbols has them */
	uint64_t base;   /* address at run time = address as linked + base */
	uint32_t before; /* index of an earlier mapping of the same, plus 1; 0: none */
};

struct mappingtable {
	char *text; /* of the file, cut up into strings */
	VEC(struct mappingtable_row) rows;
	struct map latest; /* hash of process and object → index of the last row */
};

/*
 * Read the table at @path.
 *
 * Return: 0; -EBADMSG and @ret_line, the number of the line that is not as it should be; -EFBIG if
 *         the file is too large; or another negative errno.
 */
_must_check_ int mappingtable_read(const char *path, struct mappingtable *ret_table,
				   size_t *ret_line);
void mappingtable_deinit(struct mappingtable *table);

/* Return: where process @pid had mapped the object last; the mapping before @row, if that is not
 *         NULL; NULL: there is none. */
const struct mappingtable_row *mappingtable_find(const struct mappingtable *table, uint64_t pid,
						 const char *object, const char *build_id,
						 const struct mappingtable_row *row);

struct object;
struct objects;

/* What an id stands for. */
struct symboltable_row {
	uint64_t address; /* as the object was linked; of code that is in no file, where it ran */
	uint64_t size;    /* 0: not known */
	const char *object_name; /* these two are borrowed from the text */
	const char *build_id;
	const struct object *object; /* NULL until it was asked for */
	bool is_linked;              /* its code is in a file, which is mapped anywhere */
};

/* Where a process has mapped an object. */
struct symboltable_base {
	uint64_t pid;
	const struct object *object;
	uint64_t base; /* address at run time = address as linked + base */
};

struct symboltable {
	char *text; /* of the file, cut up into strings */
	/* Of the symbols in the order of the file; [0] stands for no symbol. */
	VEC(struct symboltable_row) rows;
	VEC(struct ptd_symbol) symbols;
	VEC(const struct ptd_symbol *) pointers; /* the same, as batches have them */
	struct map by_id;                        /* id of markers 101 → index */
	struct map synthetic;                    /* hash of the name → object that is no file */
	struct mappingtable mappings;            /* empty if the directory has none */
	VEC(struct symboltable_base) bases;
	struct map by_mapping; /* hash of process and object → index of the base */
};

/*
 * Read the table at @path.
 *
 * Return: 0; -EBADMSG and @ret_line, the number of the line that is not as it should be; -EFBIG if
 *         the file is too large; or another negative errno.
 */
_must_check_ int symboltable_read(const char *path, struct symboltable *ret_table,
				  size_t *ret_line);
void symboltable_deinit(struct symboltable *table);

/* Return: the index of the symbol with @id; 0: none has it. */
static inline uint32_t symboltable_index(const struct symboltable *table, uint64_t id)
{
	const uint64_t *index = map_get(&table->by_id, id);

	return index ? (uint32_t)*index : 0;
}

/*
 * Find the object of symbol @index, to which the instruction at @pc of process @pid belongs.
 *
 * The table states addresses as linked. Where files are mapped is in @table->mappings; if it is not
 * (older versions of ptdecode wrote no such table), it is inferred: a file is mapped at pages, so
 * the place of a symbol that is shorter than a page follows from a pc in it; that of a longer one
 * is taken from another symbol of the object, or, if there was none yet, assumed to be the highest
 * that is possible.
 *
 * Return: 0 and @ret_link: address as linked = @pc + link; or -ENOMEM.
 */
_must_check_ int symboltable_place(struct symboltable *table, struct objects *objects,
				   uint32_t index, uint64_t pid, uint64_t pc,
				   const struct object **ret_object, uint64_t *ret_link);
