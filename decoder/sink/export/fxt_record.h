/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * FXT record
 *
 * A record of the Fuchsia trace format while it is made: words of 64 bits. The first has
 * the type, the size and what belongs to the type. What follows depends on the type; arguments,
 * which have a name and a value, come last.
 *
 * Source: Fuchsia, docs/reference/tracing/trace-format.md.
 */

#include <endian.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/sink/output.h"

/* Reference to a string: it is in the record; its number of bytes. */
#define FXT_INLINE 0x8000u

/* Words of the longest record: it has a name, and a few words besides. */
#define FXT_RECORD_MAX (OUTPUT_NAME_MAX / 8 + 16)

enum fxt_record_type {
	FXT_RECORD_METADATA = 0,
	FXT_RECORD_INITIALIZATION = 1,
	FXT_RECORD_STRING = 2,
	FXT_RECORD_THREAD = 3,
	FXT_RECORD_EVENT = 4,
	FXT_RECORD_KERNEL_OBJECT = 7,
	FXT_RECORD_SCHEDULING = 8,
};

enum fxt_event_type {
	FXT_EVENT_INSTANT = 0,
	FXT_EVENT_BEGIN = 2,
	FXT_EVENT_END = 3,
};

enum fxt_arg_type {
	FXT_ARG_I32 = 1,
	FXT_ARG_U32 = 2,
	FXT_ARG_U64 = 4,
	FXT_ARG_STRING = 6,
	FXT_ARG_POINTER = 7,
	FXT_ARG_KOID = 8,
	FXT_ARG_BOOL = 9,
};

enum fxt_object_type {
	FXT_OBJECT_PROCESS = 1,
	FXT_OBJECT_THREAD = 2,
};

struct fxt_record {
	uint64_t words[FXT_RECORD_MAX]; /* as they are written; the first is set at the end */
	size_t n_words;                 /* with the first: 1 in an empty record */
	unsigned int n_args;
};

/* Add a word, or @size bytes of a text, which are filled up to whole words. */
void fxt_record_word(struct fxt_record *record, uint64_t word);
void fxt_record_text(struct fxt_record *record, const char *text, size_t size);

/* Return: an argument whose value is in its one word. @name is the number of a string. */
static inline uint64_t fxt_small_arg(enum fxt_arg_type type, uint16_t name, uint32_t value)
{
	return htole64((uint64_t)value << 32 | (uint64_t)name << 16 | 1 << 4 | (uint64_t)type);
}

/* Add an argument of one word, or of two. */
void fxt_record_small_arg(struct fxt_record *record, enum fxt_arg_type type, uint16_t name,
			  uint32_t value);
void fxt_record_arg(struct fxt_record *record, enum fxt_arg_type type, uint16_t name,
		    uint64_t value);

/* Return: the bits of an event's first word, but for its record type and size. */
static inline uint64_t fxt_event_bits(enum fxt_event_type type, unsigned int n_args, uint8_t thread,
				      uint16_t category, uint16_t name)
{
	return (uint64_t)name << 48 | (uint64_t)category << 32 | (uint64_t)thread << 24 |
	       (uint64_t)n_args << 20 | (uint64_t)type << 16;
}

/*
 * Write the record, with its type, its size, and the other bits of its first word.
 *
 * Return: 0 or negative errno, which the output keeps.
 */
int fxt_record_put(struct fxt_record *record, struct ptd_output *output, enum fxt_record_type type,
		   uint64_t bits);
