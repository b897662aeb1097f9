/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovninames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Keys of types and tasks have the process in the upper 24 bits, and the model. */
#define PROCESS_SHIFT 40
#define MODEL_SHIFT   32

uint64_t ovninames_key(char model, uint32_t process, uint32_t number)
{
	return (uint64_t)(process + 1) << PROCESS_SHIFT | (uint64_t)(uint8_t)model << MODEL_SHIFT |
	       number;
}

/* Get the number of the name @text, which is copied if it is new. */
static int get_name(struct ovninames *names, const char *text, uint32_t *ret_name)
{
	uint64_t key = map_hash(text, strlen(text));
	const uint64_t *known;
	const char *copy;
	int r;

	for (; (known = map_get(&names->by_text, key)); key++)
		if (strcmp(names->all.items[*known], text) == 0) {
			*ret_name = (uint32_t)*known;
			return 0;
		}
	if (names->all.n == OVNINAMES_MAX)
		return -EFBIG;
	copy = arena_strdup(&names->arena, text);
	r = copy ? vec_push(&names->all, copy) : -ENOMEM;
	*ret_name = (uint32_t)(names->all.n - 1);
	return r < 0 ? r : map_put(&names->by_text, key, *ret_name);
}

int ovninames_title(struct ovninames *names, unsigned int type, const char *title)
{
	struct ovnimark *mark = &names->marks[type];

	if (!mark->title)
		mark->title = arena_strdup(&names->arena, title);
	return mark->title ? 0 : -ENOMEM;
}

int ovninames_label(struct ovninames *names, unsigned int type, int64_t value, const char *label)
{
	uint32_t name;
	const int r = get_name(names, label, &name);

	return r < 0 ? r : map_put(&names->marks[type].names, (uint64_t)value, name);
}

int ovninames_type(struct ovninames *names, uint64_t key, const char *label)
{
	uint32_t name;
	const int r = get_name(names, label, &name);

	return r < 0 ? r : map_put(&names->types, key, name);
}

int ovninames_task(struct ovninames *names, uint64_t key, uint64_t type)
{
	if (names->tasks.n_used == OVNINAMES_TASKS_MAX && !map_get(&names->tasks, key))
		return -EFBIG;
	return map_put(&names->tasks, key, type);
}

int ovninames_of_mark(struct ovninames *names, uint32_t type, int64_t value, uint32_t *ret_name)
{
	struct ovnimark *mark = type < OVNI_MARK_TYPES ? &names->marks[type] : NULL;
	const uint64_t *known = mark ? map_get(&mark->names, (uint64_t)value) : NULL;
	char text[OVNINAMES_SIZE];
	int r;

	if (known) {
		*ret_name = (uint32_t)*known;
		return 0;
	}
	if (mark && mark->title)
		(void)snprintf(text, sizeof(text), "%.900s %" PRId64, mark->title, value);
	else
		(void)snprintf(text, sizeof(text), "mark %" PRIu32 " %" PRId64, type, value);
	r = get_name(names, text, ret_name);
	return r < 0 || !mark ? r : map_put(&mark->names, (uint64_t)value, *ret_name);
}

/* Return: the name of the model with this letter, as ovni has it. */
static const char *model_name(char model)
{
	static const char letters[] = "6DKMOPTV";
	static const char *const names[] = { "nanos6", "nodes",  "kernel", "mpi",
					     "ovni",   "openmp", "tampi",  "nosv" };
	const char *found = model ? strchr(letters, model) : NULL;

	return found ? names[found - letters] : "ovni";
}

int ovninames_of_type(struct ovninames *names, char model, uint64_t type, uint32_t *ret_name)
{
	const uint64_t *known = type ? map_get(&names->types, type) : NULL;
	char text[64];

	if (known) {
		*ret_name = (uint32_t)*known;
		return 0;
	}
	(void)snprintf(text, sizeof(text), "%s task", model_name(model));
	return get_name(names, text, ret_name);
}

int ovninames_of_event(struct ovninames *names, const char letters[static OVNI_LETTERS],
		       uint32_t *ret_name)
{
	const uint64_t key = (uint64_t)(uint8_t)letters[0] << 16 |
			     (uint64_t)(uint8_t)letters[1] << 8 | (uint8_t)letters[2];
	const uint64_t *known = map_get(&names->other, key);
	char text[64];
	int r;

	if (known) {
		*ret_name = (uint32_t)*known;
		return 0;
	}
	(void)snprintf(text, sizeof(text), "%s %.3s", model_name(letters[0]), letters);
	r = get_name(names, text, ret_name);
	return r < 0 ? r : map_put(&names->other, key, *ret_name);
}

void ovninames_deinit(struct ovninames *names)
{
	for (size_t i = 0; i < OVNI_MARK_TYPES; i++)
		map_deinit(&names->marks[i].names);
	vec_deinit(&names->all);
	map_deinit(&names->by_text);
	map_deinit(&names->types);
	map_deinit(&names->tasks);
	map_deinit(&names->other);
	arena_deinit(&names->arena);
}
