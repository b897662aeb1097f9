/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/space.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "util/vec.h"

struct space {
	uint32_t id;
	VEC(struct mapping) mappings; /* by time */
	const struct space *shared;   /* or NULL */
	bool is_exact;
};

int space_new(uint32_t id, const struct space *parent, uint64_t time, struct space **ret_space)
{
	_cleanup_(space_freep) struct space *s = calloc(1, sizeof(*s));
	size_t n;
	int r;

	if (!s)
		return -ENOMEM;
	s->id = id;

	if (parent) {
		n = space_n_own(parent, time);
		r = vec_reserve(&s->mappings, n);
		if (r < 0)
			return r;
		/* What the parent will note later need not be the child's. */
		for (size_t i = 0; i < n; i++)
			if (parent->mappings.items[i].kind != MAPPING_EARLY)
				s->mappings.items[s->mappings.n++] = parent->mappings.items[i];
	}

	*ret_space = TAKE(s);
	return 0;
}

struct space *space_free(struct space *space)
{
	if (!space)
		return NULL;

	vec_deinit(&space->mappings);
	free(space);
	return NULL;
}

uint32_t space_id(const struct space *space)
{
	return space->id;
}

void space_share(struct space *space, const struct space *shared)
{
	space->shared = shared;
}

int space_map(struct space *space, const struct mapping *mapping)
{
	if (mapping->size == 0 || mapping->size - 1 > UINT64_MAX - mapping->start)
		return -EINVAL;

	assert(space->mappings.n == 0 ||
	       space->mappings.items[space->mappings.n - 1].time <= mapping->time);
	return vec_push(&space->mappings, *mapping);
}

void space_replace(struct space *space, struct space *other)
{
	const __typeof__(space->mappings) mappings = space->mappings;

	space->mappings = other->mappings;
	other->mappings = mappings;
	space->is_exact = true;
}

bool space_is_exact(const struct space *space)
{
	return space->is_exact;
}

void space_forget(struct space *space, size_t i, const struct object *object)
{
	assert(i < space->mappings.n);
	space->mappings.items[i].object = object;
	space->mappings.items[i].offset = 0;
}

size_t space_n_own(const struct space *space, uint64_t time)
{
	return vec_bisect(&space->mappings, mapping, mapping->time <= time);
}

size_t space_generation(const struct space *space, uint64_t time)
{
	return space_n_own(space, time) + (space->shared ? space_n_own(space->shared, time) : 0);
}

static uint64_t next_own_change(const struct space *space, uint64_t time)
{
	const size_t n = space_n_own(space, time);

	return n < space->mappings.n ? space->mappings.items[n].time : UINT64_MAX;
}

uint64_t space_next_change(const struct space *space, uint64_t time)
{
	const uint64_t own = next_own_change(space, time);
	const uint64_t shared = space->shared ? next_own_change(space->shared, time) : UINT64_MAX;

	return own < shared ? own : shared;
}

const struct mapping *space_mapping(const struct space *space, size_t i)
{
	assert(i < space->mappings.n);
	return &space->mappings.items[i];
}

const struct mapping *space_next(const struct space *space, struct space_place *place)
{
	const struct mapping *own = NULL, *shared = NULL;

	if (place->n_own < space->mappings.n)
		own = &space->mappings.items[place->n_own];
	if (space->shared && place->n_shared < space->shared->mappings.n)
		shared = &space->shared->mappings.items[place->n_shared];
	assert(own || shared);
	if (!own || (shared && shared->time <= own->time)) {
		place->n_shared++;
		return shared;
	}
	place->n_own++;
	return own;
}
