/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JSON reader
 *
 * Reads a JSON document (RFC 8259) from memory, value by value, in the order in which they stand:
 *
 *	r = jsonreader_open(&json, '{');
 *	while (r == 0 && (r = jsonreader_key(&json, key, sizeof(key))) > 0)
 *		r = …(&json);	each reads or skips the value of the key
 *
 * and the same with jsonreader_item() for an array, '['. All functions return -EBADMSG if the bytes
 * are not what is asked for; json.c.pos is where.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"

#define JSONREADER_DEPTH_MAX 32

struct jsonreader {
	struct cursor c;
	unsigned int depth; /* objects and arrays that are open */
	bool is_first;      /* nothing was read of the innermost yet */
};

/* Make a reader of @size bytes, which are borrowed. */
struct jsonreader jsonreader_from(const void *bytes, size_t size);

/* Return: whether the next value is an object ('{'), an array ('['), or a text ('"'). */
bool jsonreader_is(struct jsonreader *json, char opener);

/* Enter the object or array that comes next. Return: 0 or -EBADMSG. */
_must_check_ int jsonreader_open(struct jsonreader *json, char opener);

/* Go to the next value of an object, whose key is cut to @size - 1 bytes, or of an array. Return:
 * 1; 0: it has ended, and was left; or -EBADMSG. */
_must_check_ int jsonreader_key(struct jsonreader *json, char *ret_key, size_t size);
_must_check_ int jsonreader_item(struct jsonreader *json);

/* Read a text, which is cut to @size - 1 bytes; or the integer part of a number, and
 * the largest one there is if it is larger. Return: 0 or -EBADMSG. */
_must_check_ int jsonreader_text(struct jsonreader *json, char *ret_text, size_t size);
_must_check_ int jsonreader_number(struct jsonreader *json, int64_t *ret_number);

/* Skip a value. Return: 0 or -EBADMSG. */
_must_check_ int jsonreader_skip(struct jsonreader *json);
