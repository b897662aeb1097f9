/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JSON
 *
 * Writes one JSON document (RFC 8259) to an output, piece by piece. Every value has a key if it
 * lies in an object; its key is NULL in an array. What lies in the outermost two levels begins on a
 * line of its own, so that a row of a table is a line.
 *
 * Numbers are integers of up to 64 bits. In a foreign text, a byte that is not part of a printable
 * character of UTF-8 becomes U+FFFD, or \u00XX if it is a control character of ASCII.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/sink/sink.h"
#include "ptd/calls.h"

#define JSON_DEPTH_MAX 16

struct json {
	struct output *output; /* borrowed */
	unsigned int depth;    /* objects and arrays that are open */
	char closers[JSON_DEPTH_MAX];
	bool has_items[JSON_DEPTH_MAX]; /* of each that is open */
	bool in_html; /* texts have no '<', '>' or '&', so that none ends a script in HTML */
};

/* Return: a document in which nothing stands yet. */
static inline struct json json_begin(struct output *output)
{
	return (struct json){ .output = output };
}

/* Open an object or an array, which may have at most JSON_DEPTH_MAX around it. */
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);

/* Close what was opened last. The end of the outermost ends the document with a newline. */
void json_close(struct json *json);

/* A NULL text is null. */
void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, uint64_t number);
void json_signed(struct json *json, const char *key, int64_t number);
void json_bool(struct json *json, const char *key, bool is_true);
void json_null(struct json *json, const char *key);

/* An address as a text, "0x…", since other programs' numbers may not have 64 bits. */
void json_address(struct json *json, const char *key, uint64_t address);

/* A pid or tid. One that the records do not say is null. */
void json_id(struct json *json, const char *key, uint32_t id);

/* The member "clock" of a document: "ns", "tsc", or null if the stream has no time. */
void json_clock(struct json *json, enum ptd_clock clock);

/* The members "function", "object" and "address" (as linked) of a row. */
void json_function(struct json *json, const struct ptd_function *function);
