/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Naming
 *
 * Which object and which symbol an instruction of a drmemtrace directory belongs to: as the markers
 * 101 state, if the directory has aux/symbols.tsv; or as the file has it that modules.log states
 * for the pc.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/symboltable.h"
#include "ptd/record.h"
#include "util/vec.h"

/*
 * modules.log of a drmemtrace directory that DynamoRIO wrote: which file was mapped where. It is
 * about one process, and states no times.
 */

struct object;
struct objects;

struct modules_segment {
	uint64_t start, end;         /* of the mapping; @end is behind it */
	uint64_t offset;             /* of its first byte in the file */
	const char *path;            /* borrowed from the text */
	const struct object *object; /* NULL until it was asked for */
};

struct modules {
	char *text;
	VEC(struct modules_segment) segments; /* by address */
};

/*
 * Read the file at @path. Lines that are not as they should be are passed over.
 *
 * Return: 0; -EFBIG if it is too large; or another negative errno.
 */
_must_check_ int modules_read(const char *path, struct modules *ret_modules);
void modules_deinit(struct modules *modules);

/*
 * Find what was mapped at @pc.
 *
 * Return: 0, @ret_object, NULL if nothing is known, and @ret_offset of @pc in it; or -ENOMEM.
 */
_must_check_ int modules_find(struct modules *modules, struct objects *objects, uint64_t pc,
			      const struct object **ret_object, uint64_t *ret_offset);

struct resolver;

struct naming {
	struct objects *objects;   /* borrowed, like the next one */
	struct resolver *resolver; /* gives out symbols if there is no table */
	bool has_table;
	struct symboltable table;
	struct modules modules;
	const struct object *unknown; /* of code about which nothing is known; NULL until then */
};

/* What is known of an instruction. */
struct naming_answer {
	const struct object *object;
	uint64_t link;   /* address as linked = pc + link */
	uint32_t symbol; /* id, or PTD_NO_SYMBOL */
};

/*
 * Read what the directory @dir has.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int naming_init(struct naming *naming, const char *dir, struct objects *objects,
			     struct resolver *resolver, char **reterr_message);
void naming_deinit(struct naming *naming);

/*
 * Find what the instruction at @pc of process @pid belongs to, where the value @id of
 * the last marker 101 holds; 0: there was none.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int naming_find(struct naming *naming, uint64_t pid, uint64_t pc, uint64_t id,
			     struct naming_answer *ret_answer);

/*
 * Return: the bytes of the instruction of @size bytes at @pc, if a file is known to have been
 * mapped
 *         there; or NULL.
 */
const uint8_t *naming_bytes(struct naming *naming, uint64_t pc, size_t size);

/* Return: all symbols, by id, as struct ptd_batch has them. */
const struct ptd_symbol *const *naming_symbols(const struct naming *naming, size_t *ret_n);
