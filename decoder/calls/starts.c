/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/starts.h"

#include <errno.h>
#include <string.h>

struct starts_part {
	size_t n;
	struct start items[STARTS_PART];
};

void starts_deinit(struct starts *starts)
{
	for (size_t i = 0; i < starts->parts.n; i++)
		free(starts->parts.items[i]);
	vec_deinit(&starts->parts);
}

/* Return: whether @start is at most at @address of @object. */
static bool is_up_to(const struct start *start, uint32_t object, uint64_t address)
{
	return start->object != object ? start->object < object : start->address <= address;
}

/* Return: how many parts begin at most at the address. */
static size_t count_parts(const struct starts *starts, uint32_t object, uint64_t address)
{
	return vec_bisect(&starts->parts, part, is_up_to((*part)->items, object, address));
}

/* Return: how many starts of the part are at most at the address. */
static size_t count_starts(const struct starts_part *part, uint32_t object, uint64_t address)
{
	return vec_bisect(part, start, is_up_to(start, object, address));
}

/* Add an empty part as number @i. Return: it; NULL: no memory. */
static struct starts_part *add_part(struct starts *starts, size_t i)
{
	struct starts_part *part = calloc(1, sizeof(*part));

	if (!part || vec_reserve(&starts->parts, 1) < 0) {
		free(part);
		return NULL;
	}
	memmove(&starts->parts.items[i + 1], &starts->parts.items[i],
		(starts->parts.n++ - i) * sizeof(struct starts_part *));
	starts->parts.items[i] = part;
	return part;
}

/* Move the second half of part @i, which is full, to a new one behind it. */
static int split(struct starts *starts, size_t i)
{
	struct starts_part *whole = starts->parts.items[i];
	struct starts_part *half = add_part(starts, i + 1);

	if (!half)
		return -ENOMEM;
	half->n = STARTS_PART / 2;
	whole->n = STARTS_PART - half->n;
	memcpy(half->items, &whole->items[whole->n], half->n * sizeof(*half->items));
	return 0;
}

int starts_add(struct starts *starts, const struct start *start)
{
	size_t i = count_parts(starts, start->object, start->address);
	struct starts_part *part;
	size_t at;

	if (starts->parts.n == 0 && !add_part(starts, 0))
		return -ENOMEM;
	/* What comes before all others belongs to the first part. */
	i -= i > 0;
	if (starts->parts.items[i]->n == STARTS_PART) {
		if (split(starts, i) < 0)
			return -ENOMEM;
		i += is_up_to(starts->parts.items[i + 1]->items, start->object, start->address);
	}
	part = starts->parts.items[i];
	at = count_starts(part, start->object, start->address);
	memmove(&part->items[at + 1], &part->items[at], (part->n++ - at) * sizeof(*part->items));
	part->items[at] = *start;
	return 0;
}

const struct start *starts_nearest(const struct starts *starts, uint32_t object, uint64_t address)
{
	const size_t n_parts = count_parts(starts, object, address);
	const struct starts_part *part;
	const struct start *start;

	if (n_parts == 0)
		return NULL;
	/* It begins at most there, so that it has at least one. */
	part = starts->parts.items[n_parts - 1];
	start = &part->items[count_starts(part, object, address) - 1];
	return start->object == object ? start : NULL;
}
