/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/memtrace/modules.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/image/objects.h"
#include "decoder/memtrace/container.h"

#define TEXT_MAX  (UINT32_C(1) << 26)
#define N_NUMBERS 7 /* before the path: id, containing id, start, end, entry, offset, base */

void modules_deinit(struct modules *modules)
{
	free(modules->text);
	modules->text = NULL;
	vec_deinit(&modules->segments);
}

/* Read a number and the comma behind it. */
static bool read_number(const char **at, int base, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(*at, &end, base);
	if (errno || end == *at)
		return false;
	while (*end == ' ')
		end++;
	if (*end != ',')
		return false;
	*at = end + 1;
	return true;
}

/*
 * Pass over what raw2trace keeps before the path: "v#1,", a size, a comma, and that number of bytes
 * of the module, which may be any. Return: whether that is as it should be.
 */
static bool skip_contents(const char **at, const char *end)
{
	uint64_t size;
	const char *comma;

	if (strncmp(*at, "v#", 2) != 0)
		return true;
	comma = strchr(*at, ',');
	if (!comma)
		return false;
	*at = comma + 1;
	if (!read_number(at, 10, &size) || size > (uint64_t)(end - *at))
		return false;
	*at += size;
	return true;
}

/* Take the line at @at. Return: 0 or -ENOMEM, and @ret_next, where the next one begins. */
static int read_line(struct modules *modules, char *at, char *end, char **ret_next)
{
	uint64_t numbers[N_NUMBERS];
	const char *from = at;
	bool is_good = true;
	char *newline, *path;

	for (size_t i = 0; i < N_NUMBERS && is_good; i++)
		is_good = read_number(&from, i < 2 ? 10 : 16, &numbers[i]);
	while (is_good && *from == ' ')
		from++;
	is_good = is_good && skip_contents(&from, end);
	while (is_good && *from == ' ')
		from++;
	path = at + (from - at);
	newline = memchr(path, '\n', (size_t)(end - path));
	if (newline)
		*newline = '\0';
	*ret_next = newline ? newline + 1 : end;
	if (!is_good || numbers[2] >= numbers[3])
		return 0;
	return vec_push(
	    &modules->segments,
	    { .start = numbers[2], .end = numbers[3], .offset = numbers[5], .path = path });
}

static int by_start(const void *a, const void *b)
{
	const struct modules_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int modules_read(const char *path, struct modules *ret_modules)
{
	_cleanup_(modules_deinit) struct modules modules = {};
	char *at, *end;
	size_t size;
	int r;

	r = container_read_all(path, TEXT_MAX, &modules.text, &size);
	if (r < 0)
		return r;
	end = modules.text + size;
	for (at = modules.text; at < end && r == 0;)
		r = read_line(&modules, at, end, &at);
	if (r < 0)
		return r;
	if (modules.segments.n > 0)
		qsort(modules.segments.items, modules.segments.n, sizeof(*modules.segments.items),
		      by_start);
	*ret_modules = modules;
	modules = (struct modules){};
	return 0;
}

int modules_find(struct modules *modules, struct objects *objects, uint64_t pc,
		 const struct object **ret_object, uint64_t *ret_offset)
{
	const size_t i = vec_bisect(&modules->segments, segment, segment->start <= pc);
	struct modules_segment *found = i > 0 ? &modules->segments.items[i - 1] : NULL;
	int r = 0;

	*ret_object = NULL;
	*ret_offset = 0;
	if (!found || pc >= found->end)
		return 0;
	if (!found->object)
		r = objects_find(objects, found->path, NULL, &found->object);
	if (r < 0)
		return r;
	*ret_object = found->object;
	*ret_offset = found->offset + (pc - found->start);
	return 0;
}
