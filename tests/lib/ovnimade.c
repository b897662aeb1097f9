/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/ovnimade.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct made {
	uint8_t *bytes;
	size_t n;
	bool is_big;
};

static void stop(const char *word)
{
	(void)fprintf(stderr, "no word of ovnimade.h: %s\n", word);
	exit(1);
}

static void put(struct made *m, uint64_t value, size_t size)
{
	if (m->n + size > OVNIMADE_MAX)
		stop("too many");
	for (size_t i = 0; i < size; i++)
		m->bytes[m->n++] = (uint8_t)(value >> 8 * (m->is_big ? size - 1 - i : i));
}

static void put_text(struct made *m, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		put(m, (uint8_t)text[i], 1);
}

static void put_raw(struct made *m, const char *digits)
{
	unsigned int byte;

	for (; sscanf(digits, "%2x", &byte) == 1; digits += 2)
		put(m, byte, 1);
	if (*digits && *digits != ' ')
		stop(digits);
}

/* Put the numbers of a payload. */
static void put_numbers(struct made *m, const char *word, char *at)
{
	const size_t head = m->n;

	while (*at != ')') {
		const long long value = strtoll(at, &at, 0);

		put(m, (uint64_t)value, *at == 'q' ? 8 : 4);
		at += *at == 'q';
		if (*at == ',')
			at++;
		else if (*at != ')')
			stop(word);
	}
	m->bytes[head - 12] = (uint8_t)(m->n - head - 1);
}

static void put_jumbo(struct made *m, const char *word, char *at)
{
	const size_t head = m->n;
	const uint64_t number = strtoull(at, &at, 0);
	const char *end = strchr(at, '}');

	if (*at != ':' || !end)
		stop(word);
	m->bytes[head - 12] = 0x13;
	put(m, 4 + (uint64_t)(end - at), 4);
	put(m, number, 4);
	put_text(m, at + 1, (size_t)(end - at - 1));
	put(m, 0, 1);
}

static void put_event(struct made *m, const char *word)
{
	const char *clock = strlen(word) > 3 ? word + 3 : word;
	uint64_t t;
	char *at;

	if (*clock != '@')
		stop(word);
	t = strtoull(clock + 1, &at, 0);
	put(m, 0, 1);
	put_text(m, word, 3);
	put(m, t, 8);
	if (*at == '(')
		put_numbers(m, word, at + 1);
	else if (*at == '{')
		put_jumbo(m, word, at + 1);
	else if (*at)
		stop(word);
}

static void put_word(struct made *m, const char *word)
{
	if (strcmp(word, "B") == 0) {
		m->is_big = true;
	} else if (word[0] == 'h') {
		put_text(m, "ovni", 4);
		put(m, word[1] ? strtoull(word + 1, NULL, 10) : 1, 4);
	} else if (word[0] == 'r') {
		put_raw(m, word + 1);
	} else if (word[0] == '-') {
		m->n -= strtoull(word + 1, NULL, 10);
	} else {
		put_event(m, word);
	}
}

size_t ovnimade_put(const char *text, uint8_t ret_bytes[static OVNIMADE_MAX])
{
	struct made m = { .bytes = ret_bytes };
	char *copy = strdup(text), *rest = copy;

	for (char *word; (word = strsep(&rest, " "));)
		if (*word)
			put_word(&m, word);
	free(copy);
	return m.n;
}
