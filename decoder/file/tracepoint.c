/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/tracepoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAGIC       "\x17\x08\x44tracing"
#define SYSTEM      "sched"
#define NAME        "sched_switch"
#define LINE_SIZE   256
#define OFFSET_MAX  UINT16_MAX /* a sample is not longer */
#define PID_SIZE    4
#define PAGE_FIELDS 6 /* byte order, size of a long, size of a page */

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
static bool get_field(const char *line, const char *name, uint32_t *ret_offset)
{
	const char *end = strchr(line, ';');
	const size_t n = strlen(name);
	uint32_t offset, size;

	if (strncmp(line, "\tfield:", 7) != 0 || !end || (size_t)(end - line) <= 7 + n ||
	    end[-(ptrdiff_t)n - 1] != ' ' || strncmp(end - n, name, n) != 0 ||
	    sscanf(end, ";\toffset:%9u;\tsize:%9u;", &offset, &size) != 2 || size != PID_SIZE ||
	    offset > OFFSET_MAX)
		return false;
	*ret_offset = offset;
	return true;
}

/* Return: 0; -ENOENT if it is another's format; -EBADMSG. */
static int read_format(struct cursor text, struct tracepoint *ret_tracepoint)
{
	struct tracepoint t = {};
	bool has_prev = false, has_next = false;
	char line[LINE_SIZE];
	unsigned id;

	if (!get_line(&text, line) || strcmp(line, "name: " NAME) != 0)
		return -ENOENT;
	while (get_line(&text, line)) {
		if (!t.is_known && sscanf(line, "ID: %9u", &id) == 1) {
			t.is_known = true;
			t.id = id;
		}
		has_prev = has_prev || get_field(line, "prev_pid", &t.prev_pid);
		has_next = has_next || get_field(line, "next_pid", &t.next_pid);
	}
	if (!t.is_known || !has_prev || !has_next)
		return -EBADMSG;
	*ret_tracepoint = t;
	return 0;
}

/* The events of one system. Return: 0 if sched_switch was found; -ENOENT, or -EBADMSG. */
static int find_in_system(struct cursor *c, struct tracepoint *ret_tracepoint)
{
	struct cursor text;
	const char *system;
	uint32_t n = 0;
	int r;

	r = cursor_get_string(c, &system);
	if (r == 0)
		r = cursor_get(c, sizeof(n), &n);
	if (r < 0)
		return r;
	for (; n > 0; n--) {
		r = get_text(c, &text);
		if (r < 0)
			return r;
		if (strcmp(system, SYSTEM) != 0)
			continue;
		r = read_format(text, ret_tracepoint);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int tracepoint_find(struct cursor data, struct tracepoint *ret_tracepoint)
{
	uint32_t n = 0;
	int r;

	r = skip_head(&data);
	if (r == 0)
		r = cursor_get(&data, sizeof(n), &n);
	if (r < 0)
		return r;
	for (r = -ENOENT; n > 0 && r == -ENOENT; n--)
		r = find_in_system(&data, ret_tracepoint);
	return r;
}

int tracepoint_read(const struct tracepoint *tracepoint, struct cursor raw, uint32_t *ret_prev,
		    struct cursor *ret_next)
{
	struct cursor prev = raw;
	uint32_t prev_pid;
	int r;

	r = cursor_skip(&prev, tracepoint->prev_pid)
		?: cursor_get(&prev, sizeof(prev_pid), &prev_pid);
	r = r ?: cursor_skip(&raw, tracepoint->next_pid);
	r = r ?: cursor_get_sub(&raw, PID_SIZE, ret_next);
	if (r == 0)
		*ret_prev = prev_pid;
	return r;
}
