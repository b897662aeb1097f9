/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/fdrmade.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/util/fdr.h"

struct made {
	uint8_t *bytes;
	size_t n;
	size_t extents; /* offset of the data of the record that is open; 0: none is */
	bool is_big;
	unsigned int version;
	const char *p;
};

_Noreturn static void fail(const struct made *m)
{
	fprintf(stderr, "fdrmade: cannot read \"%s\"\n", m->p);
	exit(1);
}

static void put_at(struct made *m, size_t at, uint64_t v, size_t size)
{
	if (at + size > FDRMADE_MAX)
		fail(m);
	for (size_t i = 0; i < size; i++)
		m->bytes[at + (m->is_big ? size - 1 - i : i)] = (uint8_t)(v >> 8 * i);
}

static void put(struct made *m, uint64_t v, size_t size)
{
	put_at(m, m->n, v, size);
	m->n += size;
}

/* Return: the number at m->p, which is behind it then. */
static uint64_t number(struct made *m)
{
	char *end;
	const uint64_t v = strtoull(m->p, &end, 10);

	if (end == m->p)
		fail(m);
	m->p = end;
	return v;
}

/* Return: the number behind the character @c; @other if that does not stand there. */
static uint64_t number_behind(struct made *m, char c, uint64_t other)
{
	if (*m->p != c)
		return other;
	m->p++;
	return number(m);
}

/* Begin a metadata record, whose data are 0. Return: where they are. */
static size_t put_metadata(struct made *m, unsigned int kind)
{
	const size_t at = m->n;

	if (at + FDR_METADATA_SIZE > FDRMADE_MAX)
		fail(m);
	memset(m->bytes + at, 0, FDR_METADATA_SIZE);
	m->bytes[at] = (uint8_t)(m->is_big ? 0x80 | kind : kind << 1 | 1);
	m->n += FDR_METADATA_SIZE;
	return at + 1;
}

static void put_function(struct made *m, unsigned int action)
{
	const uint32_t function = (uint32_t)number(m);

	put(m, m->is_big ? action << 28 | function : function << 4 | action << 1, 4);
	put(m, number_behind(m, '+', 0), 4);
}

static void close_extents(struct made *m)
{
	if (m->extents > 0)
		put_at(m, m->extents, m->n - m->extents - FDR_METADATA_SIZE + 1, 8);
	m->extents = 0;
}

static void put_extents(struct made *m)
{
	size_t at;

	close_extents(m);
	at = put_metadata(m, FDR_BUFFER_EXTENTS);
	if (*m->p == '=')
		put_at(m, at, number_behind(m, '=', 0), 8);
	else
		m->extents = at;
}

static void put_header(struct made *m)
{
	m->version = (unsigned int)number(m);
	put(m, m->version, 2);
	put(m, FDR_TYPE, 2);
	put(m, m->is_big ? 3u << 30 : 3, 4);
	put(m, number_behind(m, ',', 1000000000), 8);
	put(m, number_behind(m, ',', 0), 8);
	put(m, 0, 8);
}

static void put_event(struct made *m, unsigned int kind)
{
	const size_t at = put_metadata(m, kind);
	const uint64_t type = kind == FDR_TYPED_EVENT ? number(m) : 0;
	const bool is_delta = *m->p == '+';
	size_t size;

	put_at(m, at + 4, number_behind(m, is_delta ? '+' : '@', 0), is_delta ? 4 : 8);
	if (kind == FDR_TYPED_EVENT)
		put_at(m, at + 8, type, 2);
	if (*m->p++ != '=')
		fail(m);
	size = strcspn(m->p, " ");
	put_at(m, at, size, 4);
	if (m->n + size > FDRMADE_MAX)
		fail(m);
	memcpy(m->bytes + m->n, m->p, size);
	m->n += size;
	m->p += size;
}

static void put_raw(struct made *m)
{
	unsigned int byte;

	for (; sscanf(m->p, "%2x", &byte) == 1 && *m->p != ' '; m->p += 2)
		put(m, byte, 1);
}

static void put_time(struct made *m, unsigned int kind)
{
	const size_t at = put_metadata(m, kind);
	size_t n = 0;

	if (kind == FDR_NEW_CPU) {
		put_at(m, at, number(m), 2);
		n = 2;
	}
	put_at(m, at + n, number_behind(m, '@', 0), 8);
}

static void put_word(struct made *m, char c)
{
	size_t at;

	switch (c) {
	case 'B':
		m->is_big = true;
		break;
	case 'h':
		put_header(m);
		break;
	case 'x':
		put_extents(m);
		break;
	case 'b':
		at = put_metadata(m, FDR_NEW_BUFFER);
		put_at(m, at, number(m), m->version == 1 ? 2 : 4);
		break;
	case 'w':
		at = put_metadata(m, FDR_WALL_TIME);
		put_at(m, at, number(m), 8);
		put_at(m, at + 8, number_behind(m, '.', 0), 4);
		break;
	case 'p':
		at = put_metadata(m, FDR_PID);
		put_at(m, at, number(m), 4);
		break;
	case 'c':
		put_time(m, FDR_NEW_CPU);
		break;
	case 't':
		put_time(m, FDR_TSC_WRAP);
		break;
	case '>':
	case '<':
	case '~':
	case 'a':
		put_function(m, (unsigned int)(strchr("><~a", c) - "><~a"));
		break;
	case 'v':
		at = put_metadata(m, FDR_CALL_ARGUMENT);
		put_at(m, at, number(m), 8);
		break;
	case 'e':
		put_event(m, FDR_CUSTOM_EVENT);
		break;
	case 'y':
		put_event(m, FDR_TYPED_EVENT);
		break;
	case '.':
		(void)put_metadata(m, FDR_END_OF_BUFFER);
		break;
	case 'k':
		(void)put_metadata(m, (unsigned int)number(m));
		break;
	case 'u': {
		const unsigned int action = (unsigned int)number(m);

		put(m, m->is_big ? action << 28 | 1 : 1 << 4 | action << 1, 4);
		put(m, 0, 4);
		break;
	}
	case 'z':
		for (uint64_t n = number(m); n > 0; n--)
			put(m, 0, 1);
		break;
	case 'r':
		put_raw(m);
		break;
	case '-':
		close_extents(m);
		m->n -= number(m);
		break;
	default:
		fail(m);
	}
}

size_t fdrmade_put(const char *text, uint8_t ret_bytes[static FDRMADE_MAX])
{
	struct made m = { .bytes = ret_bytes, .p = text };

	while (*m.p) {
		if (*m.p != ' ') {
			put_word(&m, *m.p++);
			if (*m.p && *m.p != ' ')
				fail(&m);
		} else {
			m.p++;
		}
	}
	close_extents(&m);
	return m.n;
}
