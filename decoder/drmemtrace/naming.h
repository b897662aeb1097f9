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
#include "ptd/record.h"

struct naming;
struct object;
struct objects;
struct resolver;

/* What is known of an instruction. */
struct naming_answer {
	const struct object *object;
	uint64_t link;   /* address as linked = pc + link */
	uint32_t symbol; /* id, or PTD_NO_SYMBOL */
};

/*
 * Read what the directory @dir has. @objects and @resolver, which gives out symbols if there is no
 * table, are borrowed.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int naming_new(const char *dir, struct objects *objects, struct resolver *resolver,
			    struct naming **ret_naming, char **reterr_message);
struct naming *naming_free(struct naming *naming);

/*
 * Find what the instruction at @pc of process @pid belongs to, where the value @id of the last
 * marker 101 holds; 0: there was none.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int naming_find(struct naming *naming, uint64_t pid, uint64_t pc, uint64_t id,
			     struct naming_answer *ret_answer);

/* Return: whether an instruction with the symbol @symbol may be one where @id holds, as above: an
 *         id of its own stands for a function that took the place of another one. */
bool naming_may_be(const struct naming *naming, uint64_t id, uint32_t symbol);

/*
 * Return: the bytes of the instruction of @size bytes at @pc, if a file is known to have been
 *         mapped there; or NULL.
 */
const uint8_t *naming_bytes(struct naming *naming, uint64_t pc, size_t size);

/* Return: all symbols, by id, as struct ptd_batch has them. */
const struct ptd_symbol *const *naming_symbols(const struct naming *naming, size_t *ret_n);

DEFINE_CLEANUP(struct naming *, naming_free);
