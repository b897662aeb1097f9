/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/watch.h"

#include <fcntl.h>
#include <string.h>

#include "util/function.h"
#include "util/regular.h"

uint32_t watch_at(const struct watch *watch, uint64_t address)
{
	for (size_t i = 0; i < watch->places.n; i++)
		if (watch->places.items[i].address == address)
			return watch->places.items[i].condition + 1;
	return 0;
}

static void forget(struct watch *watch, uint64_t start, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < watch->places.n; i++) {
		const struct watch_place place = watch->places.items[i];

		if (place.address < start || place.address >= end)
			watch->places.items[n++] = place;
	}
	watch->places.n = n;
}

/* An object is named by the path of the file, or by the path's last part. */
static bool is_wanted(const struct condition *condition, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (condition->kind != CONDITION_ENTER)
		return false;
	return !condition->object || strcmp(condition->object, path) == 0 ||
	       (slash && strcmp(condition->object, slash + 1) == 0);
}

static void add_place(struct watch *watch, const struct watch_mapping *mapping, uint64_t offset,
		      uint32_t condition)
{
	if (offset < mapping->offset || offset - mapping->offset >= mapping->end - mapping->start ||
	    watch->places.n == WATCH_PLACES_MAX)
		return;
	/* Without memory the function is not watched. */
	(void)!vec_push(&watch->places, { .address = mapping->start + (offset - mapping->offset),
					  .condition = condition });
}

void watch_map(struct watch *watch, const struct watch_mapping *mapping)
{
	struct function functions[WATCH_PLACES_MAX / CONDITIONS_MAX];
	const char *names[CONDITIONS_MAX];
	uint32_t indexes[CONDITIONS_MAX];
	_cleanup_(fd_closep) int fd = -1;
	size_t n = 0;
	int n_found;

	forget(watch, mapping->start, mapping->end);
	for (uint32_t i = 0; mapping->path && i < watch->n_conditions; i++) {
		if (!is_wanted(&watch->conditions[i], mapping->path))
			continue;
		names[n] = watch->conditions[i].function;
		indexes[n++] = i;
	}
	if (n == 0)
		return;
	fd = regular_open(AT_FDCWD, mapping->path, 0);
	n_found = fd < 0 ? 0 : function_find(fd, names, n, functions, ARRAY_LEN(functions));
	for (int i = 0; i < n_found; i++)
		add_place(watch, mapping, functions[i].offset, indexes[functions[i].name]);
}

void watch_deinit(struct watch *watch)
{
	vec_deinit(&watch->places);
}
