/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "decoder/sink/column.h"

#define LINES_DEPTH 2 /* deeper levels do not begin on a line of their own */

/* Errors are not checked: the output keeps the first one, and sink_finish() returns it. */
static void put(struct json *json, const char *text, size_t size)
{
	(void)output_write(json->output, text, size);
}

static void put_line(struct json *json, unsigned int depth)
{
	static const char blanks[] = "\n  ";

	put(json, blanks, depth + 1);
}

/* Return: whether the printable character of ASCII may stand in a text as it is. */
static bool is_plain(const struct json *json, char c)
{
	return c != '"' && c != '\\' && !(json->in_html && (c == '<' || c == '>' || c == '&'));
}

static void put_escaped(struct json *json, const char *text)
{
	const size_t size = strlen(text);
	size_t n;

	put(json, "\"", 1);
	for (size_t i = 0, start = 0; i <= size; i += n) {
		const bool is_ascii = text[i] >= ' ' && text[i] <= '~';

		n = is_ascii ? 1 : i < size ? printable_size(text + i, size - i) : 0;
		if (n > 0 && is_plain(json, text[i]))
			continue;
		put(json, text + start, i - start);
		if (i == size)
			break;
		if (text[i] == '"' || text[i] == '\\')
			output_printf(json->output, "\\%c", text[i]);
		else
			output_printf(json->output, "\\u%04x",
				      (uint8_t)text[i] < 0x80 ? (unsigned int)text[i] : 0xfffdu);
		n = 1;
		start = i + 1;
	}
	put(json, "\"", 1);
}

/* Begin a value: what separates it from the one before it, and its key. */
static void begin_value(struct json *json, const char *key)
{
	if (json->depth == 0)
		return;
	if (json->has_items[json->depth - 1])
		put(json, ",", 1);
	if (json->depth <= LINES_DEPTH)
		put_line(json, json->depth);
	else if (json->has_items[json->depth - 1])
		put(json, " ", 1);
	json->has_items[json->depth - 1] = true;
	/* Keys are ours, and have nothing to escape. */
	if (key) {
		put(json, "\"", 1);
		put(json, key, strlen(key));
		put(json, "\": ", 3);
	}
}

static void open_value(struct json *json, const char *key, char opener, char closer)
{
	begin_value(json, key);
	put(json, &opener, 1);
	assert(json->depth < JSON_DEPTH_MAX);
	json->closers[json->depth] = closer;
	json->has_items[json->depth++] = false;
}

void json_object(struct json *json, const char *key)
{
	open_value(json, key, '{', '}');
}

void json_array(struct json *json, const char *key)
{
	open_value(json, key, '[', ']');
}

void json_close(struct json *json)
{
	assert(json->depth > 0);
	if (json->depth-- <= LINES_DEPTH && json->has_items[json->depth])
		put_line(json, json->depth);
	put(json, &json->closers[json->depth], 1);
	if (json->depth == 0)
		put(json, "\n", 1);
}

void json_text(struct json *json, const char *key, const char *text)
{
	if (!text) {
		json_null(json, key);
		return;
	}
	begin_value(json, key);
	put_escaped(json, text);
}

void json_number(struct json *json, const char *key, uint64_t number)
{
	char text[COLUMN_MAX];

	begin_value(json, key);
	put(json, text, (size_t)(column_number(text, number, 0, ' ') - text));
}

void json_signed(struct json *json, const char *key, int64_t number)
{
	char text[COLUMN_MAX], *digits = text;
	const uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

	if (number < 0)
		*digits++ = '-';
	begin_value(json, key);
	put(json, text, (size_t)(column_number(digits, size, 0, ' ') - text));
}

void json_bool(struct json *json, const char *key, bool is_true)
{
	begin_value(json, key);
	put(json, is_true ? "true" : "false", is_true ? 4 : 5);
}

void json_null(struct json *json, const char *key)
{
	begin_value(json, key);
	put(json, "null", 4);
}

void json_address(struct json *json, const char *key, uint64_t address)
{
	begin_value(json, key);
	output_printf(json->output, "\"0x%" PRIx64 "\"", address);
}

void json_id(struct json *json, const char *key, uint32_t id)
{
	if (id == PTD_ID_UNKNOWN)
		json_null(json, key);
	else
		json_number(json, key, id);
}

void json_clock(struct json *json, enum ptd_clock clock)
{
	json_text(json, "clock",
		  clock == PTD_CLOCK_NS    ? "ns"
		  : clock == PTD_CLOCK_TSC ? "tsc"
					   : NULL);
}

void json_function(struct json *json, const struct ptd_function *function)
{
	json_text(json, "function", function->name);
	json_text(json, "object", function->object->name);
	json_address(json, "address", function->address);
}
