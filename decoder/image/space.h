/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Space
 *
 * An address space over time: a list of mappings that each hold from their time on. The
 * generation of a space at a time is the number of mappings that were made until then; a reader
 * that stands at one generation goes on by applying the mappings up to another. A mapping covers
 * older mappings that it overlaps, as far as its kind allows. Perf has no record for munmap, so a
 * mapping that was removed stays; code in it is never executed.
 *
 * A space may share the mappings of one other space, which count in its generations: all spaces
 * share the kernel's mappings.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"

/* What is mapped; the kind says which older mappings it covers. */
enum mapping_kind {
	MAPPING_FILE,   /* a file; covers everything */
	MAPPING_MEMORY, /* anonymous memory; covers everything but code of a jitdump */
	MAPPING_JIT,    /* code of a jitdump, from its time on; covers everything */
	MAPPING_EARLY,  /* code of a jitdump, before its time; covers memory and other such code */
	MAPPING_LOGGED, /* bytes of a code log (see replay.h); covers everything */
	MAPPING_RETIRE, /* maps nothing: code of the jitdump @retired belongs to @object now */
};

struct mapping {
	uint64_t time; /* ns */
	enum mapping_kind kind;
	uint64_t start;
	uint64_t size;
	uint64_t offset; /* of the byte at @start in the object */
	const struct object *object;
	const struct object *retired; /* has the same bytes as @object */
	bool is_shared; /* memory that processes share which were forked from one another */
};

struct space;

/*
 * Make a space that begins as a copy of @parent at @time (fork), but for code that is mapped as
 * early; NULL: an empty one.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int space_new(uint32_t id, const struct space *parent, uint64_t time,
			   struct space **ret_space);
struct space *space_free(struct space *space);

uint32_t space_id(const struct space *space);

/*
 * Let @space share the mappings that @shared has, or will have. They hold where @space maps nothing
 * itself. A copy of @space does not share them.
 */
void space_share(struct space *space, const struct space *shared);

/*
 * Append a mapping. Its time must not be before that of the last mapping.
 *
 * Return: 0; -EINVAL if its size is 0 or its end does not fit into 64 bits; -ENOMEM.
 */
_must_check_ int space_map(struct space *space, const struct mapping *mapping);

/*
 * Exchange the own mappings of @space for those of @other, into which a code log was replayed.
 * @space is exact from now on: it is known at each time which code runs, so a mapping that covers
 * another one leaves no doubt about the code.
 */
void space_replace(struct space *space, struct space *other);

/* Return: whether the space is exact. */
bool space_is_exact(const struct space *space);

/* Let own mapping @i be of @object, which has no bytes: its bytes are not known any more. */
void space_forget(struct space *space, size_t i, const struct object *object);

/* Return: the generation of @space at @time: its mappings, and shared ones, up to that time. */
size_t space_generation(const struct space *space, uint64_t time);

/* Return: the time of the first mapping after @time; UINT64_MAX if there is none. */
uint64_t space_next_change(const struct space *space, uint64_t time);

/* Return: how many own mappings have a time up to @time. */
size_t space_n_own(const struct space *space, uint64_t time);

/* Return: own mapping @i. */
const struct mapping *space_mapping(const struct space *space, size_t i);

/* How far a reader has come; the sum of both is the generation. */
struct space_place {
	size_t n_own, n_shared;
};

/* Go to the next generation; there must be one. Return: the mapping that makes it. */
const struct mapping *space_next(const struct space *space, struct space_place *place);

DEFINE_CLEANUP(struct space *, space_free);
