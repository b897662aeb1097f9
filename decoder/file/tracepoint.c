/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/tracepoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAGIC       "\x17\x08\x44tracing"
#define LINE_SIZE   256
#define OFFSET_MAX  UINT16_MAX /* a sample is not longer */
#define PAGE_FIELDS 6          /* byte order, size of a long, size of a page */

/* What the formats call the kinds, and their fields with their sizes in bytes. */
static const struct {
	const char *system, *name;
	struct {
		const char *name;
		uint32_t size;
		bool is_optional;
	} fields[TRACEPOINT_FIELDS_MAX];
} kinds[_TRACEPOINT_KINDS] = {
	[TRACEPOINT_SCHED_SWITCH] = { "sched",
				      "sched_switch",
				      { { .name = "prev_pid", .size = 4 },
					{ .name = "next_pid", .size = 4 } } },
	[TRACEPOINT_SIGNAL_DELIVER] = { "signal",
					"signal_deliver",
					{ { .name = "sig", .size = 4 },
					  { .name = "code", .size = 4, .is_optional = true },
					  { .name = "sa_handler", .size = 8 } } },
	[TRACEPOINT_SYS_ENTER] = { "raw_syscalls", "sys_enter", { { .name = "id", .size = 8 } } },
};

/* A text, behind its size. */
static int get_text(struct cursor *c, struct cursor *ret_text)
{
	uint64_t size;
	int r = cursor_get(c, sizeof(size), &size);

	if (r < 0)
		return r;
	return size > cursor_left(c) ? -EBADMSG : cursor_get_sub(c, (size_t)size, ret_text);
}

static int skip_texts(struct cursor *c)
{
	struct cursor unused;
	uint32_t n = 0;
	int r = cursor_get(c, sizeof(n), &n);

	while (r == 0 && n-- > 0)
		r = get_text(c, &unused);
	return r;
}

/* A file of tracefs: its name, which is known, and its text. */
static int skip_file(struct cursor *c, const char *name)
{
	struct cursor unused;
	const char *found;
	int r = cursor_get_string(c, &found);

	if (r == 0 && strcmp(found, name) != 0)
		r = -EBADMSG;
	return r < 0 ? r : get_text(c, &unused);
}

/* Everything before the events of the systems. */
static int skip_head(struct cursor *c)
{
	char magic[sizeof(MAGIC) - 1];
	const char *version;
	int r;

	r = cursor_get(c, sizeof(magic), magic);
	if (r == 0 && memcmp(magic, MAGIC, sizeof(magic)) != 0)
		r = -EBADMSG;
	if (r == 0)
		r = cursor_get_string(c, &version);
	if (r == 0)
		r = cursor_skip(c, PAGE_FIELDS);
	if (r == 0)
		r = skip_file(c, "header_page");
	if (r == 0)
		r = skip_file(c, "header_event");
	return r < 0 ? r : skip_texts(c);
}

/* Take the next line, or its first part, out of the text. Return: whether there is one. */
static bool get_line(struct cursor *text, char ret_line[static LINE_SIZE])
{
	const uint8_t *end;
	size_t size;

	if (cursor_left(text) == 0)
		return false;
	end = memchr(text->pos, '\n', cursor_left(text));
	size = (size_t)((end ?: text->end) - text->pos);
	(void)snprintf(ret_line, LINE_SIZE, "%.*s", (int)(size < LINE_SIZE ? size : LINE_SIZE - 1),
		       (const char *)text->pos);
	text->pos = end ? end + 1 : text->end;
	return true;
}

/* "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;" */
static bool get_field(const char *line, const char *name, uint32_t size, uint32_t *ret_offset)
{
	const char *end = strchr(line, ';');
	const size_t n = strlen(name);
	uint32_t offset, found;

	if (strncmp(line, "\tfield:", 7) != 0 || !end || (size_t)(end - line) <= 7 + n ||
	    end[-(ptrdiff_t)n - 1] != ' ' || strncmp(end - n, name, n) != 0 ||
	    sscanf(end, ";\toffset:%9u;\tsize:%9u;", &offset, &found) != 2 || found != size ||
	    offset > OFFSET_MAX)
		return false;
	*ret_offset = offset;
	return true;
}

/* Read the format of a tracepoint of @kind, behind its name. Return: 0 or -EBADMSG. */
static int read_format(struct cursor text, enum tracepoint_kind kind,
		       struct tracepoint *ret_tracepoint)
{
	bool has[TRACEPOINT_FIELDS_MAX] = {};
	struct tracepoint t = {};
	char line[LINE_SIZE];
	unsigned id;

	while (get_line(&text, line)) {
		if (!t.is_known && sscanf(line, "ID: %9u", &id) == 1) {
			t.is_known = true;
			t.id = id;
		}
		for (size_t i = 0; i < TRACEPOINT_FIELDS_MAX && kinds[kind].fields[i].name; i++)
			has[i] = has[i] || get_field(line, kinds[kind].fields[i].name,
						     kinds[kind].fields[i].size, &t.offsets[i]);
	}
	for (size_t i = 0; i < TRACEPOINT_FIELDS_MAX && kinds[kind].fields[i].name; i++) {
		if (!has[i] && !kinds[kind].fields[i].is_optional)
			return -EBADMSG;
		if (!has[i])
			t.offsets[i] = TRACEPOINT_NO_FIELD;
	}
	if (!t.is_known)
		return -EBADMSG;
	*ret_tracepoint = t;
	return 0;
}

/* Read the format of a tracepoint of @system, of whatever kind. Return: 0 or -EBADMSG. */
static int read_tracepoint(struct cursor text, const char *system, struct tracepoint *tracepoints)
{
	char line[LINE_SIZE];

	if (!get_line(&text, line) || strncmp(line, "name: ", 6) != 0)
		return 0;
	for (size_t i = 0; i < _TRACEPOINT_KINDS; i++)
		if (strcmp(system, kinds[i].system) == 0 && strcmp(line + 6, kinds[i].name) == 0)
			return read_format(text, (enum tracepoint_kind)i, &tracepoints[i]);
	return 0;
}

/* The events of one system. */
static int find_in_system(struct cursor *c, struct tracepoint *tracepoints)
{
	struct cursor text;
	const char *system;
	uint32_t n = 0;
	int r;

	r = cursor_get_string(c, &system);
	if (r == 0)
		r = cursor_get(c, sizeof(n), &n);
	for (; r == 0 && n > 0; n--) {
		r = get_text(c, &text);
		if (r == 0)
			r = read_tracepoint(text, system, tracepoints);
	}
	return r;
}

int tracepoints_find(struct cursor data, struct tracepoint *tracepoints)
{
	uint32_t n = 0;
	int r;

	r = skip_head(&data);
	if (r == 0)
		r = cursor_get(&data, sizeof(n), &n);
	for (; r == 0 && n > 0; n--)
		r = find_in_system(&data, tracepoints);
	return r;
}

enum tracepoint_kind tracepoints_kind(const struct tracepoint *tracepoints, uint64_t id)
{
	size_t i = 0;

	while (i < _TRACEPOINT_KINDS && (!tracepoints[i].is_known || tracepoints[i].id != id))
		i++;
	return (enum tracepoint_kind)i;
}

int tracepoint_read(const struct tracepoint *tracepoint, enum tracepoint_kind kind, size_t field,
		    struct cursor raw, uint64_t *ret_value)
{
	uint64_t value = 0;
	int r;

	r = cursor_skip(&raw, tracepoint->offsets[field])
		?: cursor_get(&raw, kinds[kind].fields[field].size, &value);
	if (r == 0)
		*ret_value = value;
	return r;
}
