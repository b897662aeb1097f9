/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Space
 *
 * An address space over time: a list of mappings, each from the moment it was made. Its generation
 * at a time is the number of mappings made until then; a reader that stands at one generation
 * moves on by applying the mappings up to the next. A mapping covers what it overlaps of older
 * ones, as far as its kind allows. (Perf has no record for munmap: what was unmapped stays, and is
 * never executed.)
 *
 * A space may share the mappings of another, which are part of its generations: the kernel's are in
 * all spaces.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"

/* What a mapping is of, which says what it covers. */
enum mapping_kind {
	MAPPING_FILE,   /* covers everything */
	MAPPING_MEMORY, /* anonymous memory: does not cover code that a JIT says it put there */
	MAPPING_JIT,    /* such code from its time on: covers everything */
	MAPPING_EARLY,  /* such code before its time, a guess: covers memory and other guesses */
	MAPPING_LOGGED, /* of a code log, which covers everything, and is covered (see replay.h) */
	MAPPING_RETIRE, /* nothing is mapped, but JIT code of object @retired becomes of @object */
};

struct mapping {
	uint64_t time;
	enum mapping_kind kind;
	uint64_t start;
	uint64_t size;
	uint64_t offset; /* of @start in the object's file */
	const struct object *object;
	const struct object *retired; /* whose bytes are the same as @object's */
};

struct space;

/*
 * @parent is the space this one began as a copy of, at @time (fork); NULL for an empty one.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int space_new(uint32_t id, const struct space *parent, uint64_t time,
			   struct space **ret_space);
struct space *space_free(struct space *space);

uint32_t space_id(const struct space *space);

/*
 * Let @space have also what is mapped in @shared, now or later, at addresses where it maps nothing
 * itself. A fork does not inherit it.
 */
void space_share(struct space *space, const struct space *shared);

/*
 * Add a mapping; times never go backwards.
 *
 * Return: 0; -EINVAL if its end does not fit into 64 bits or its size is 0; -ENOMEM.
 */
_must_check_ int space_map(struct space *space, const struct mapping *mapping);

/*
 * Take the own mappings of @other in the place of those that @space has, and leave these to @other.
 * A code log is among them: it is known at each time what runs, so that nothing that is mapped over
 * other memory leaves that in doubt.
 */
void space_replace(struct space *space, struct space *other);

/* Return: whether that was done. */
bool space_is_exact(const struct space *space);

/* Nobody knows the bytes of its own mapping @i any more: it becomes of @object, which has none. */
void space_forget(struct space *space, size_t i, const struct object *object);

/* Return: how many mappings there are with a time up to @time. */
size_t space_generation(const struct space *space, uint64_t time);

/* Return: its own mappings with a time up to @time. */
size_t space_n_own(const struct space *space, uint64_t time);

/* Return: its own mapping @i. */
const struct mapping *space_mapping(const struct space *space, size_t i);

/* How many mappings a generation has: their sum is its number. */
struct space_place {
	size_t n_own, n_shared;
};

/* Step to the next generation, of which there is one. Return: the mapping that made it. */
const struct mapping *space_next(const struct space *space, struct space_place *place);

DEFINE_CLEANUP(struct space *, space_free);
