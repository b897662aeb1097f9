/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/packets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The words of a line: a name, then numbers or further words. */
#define WORDS_MAX 20

struct line {
	char text[160];
	char *words[WORDS_MAX];
	size_t n;
	size_t n_used;
	bool wrong;
};

struct writer {
	uint8_t *bytes;
	size_t n;
};

/* Of the block that was begun last: its items have 4 bytes, not 8. */
static bool short_items;

static void put_value(struct writer *w, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		w->bytes[w->n++] = (uint8_t)(value >> 8 * i);
}

static void split_line(const char *text, struct line *ret_line)
{
	*ret_line = (struct line){ .wrong = strlen(text) >= sizeof(ret_line->text) };
	strncpy(ret_line->text, text, sizeof(ret_line->text) - 1);
	for (char *p = strtok(ret_line->text, " \t\n"); p && ret_line->n < WORDS_MAX;
	     p = strtok(NULL, " \t\n"))
		ret_line->words[ret_line->n++] = p;
}

static const char *next_word(struct line *line)
{
	return line->n_used < line->n ? line->words[line->n_used++] : "";
}

/* Take the next word if it is @name. */
static bool take_flag(struct line *line, const char *name)
{
	if (line->n_used == line->n || strcmp(line->words[line->n_used], name) != 0)
		return false;
	line->n_used++;
	return true;
}

static uint64_t read_number(struct line *line)
{
	const char *text = next_word(line);
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 16);
	if (end == text || *end || errno)
		line->wrong = true;
	return value;
}

static void put_psb(struct writer *w)
{
	for (size_t i = 0; i < 8; i++)
		put_value(w, 0x8202, 2);
}

static void put_cyc(struct writer *w, uint64_t n)
{
	uint8_t byte = (uint8_t)(0x03 | (n & 0x1f) << 3 | (n > 0x1f ? 0x04 : 0));

	put_value(w, byte, 1);
	for (n >>= 5; n > 0; n >>= 7) {
		byte = (uint8_t)((n & 0x7f) << 1 | (n > 0x7f ? 1 : 0));
		put_value(w, byte, 1);
	}
}

/* The bits are given oldest first, which is the most significant one. */
static void put_tnt(struct writer *w, struct line *line, bool is_long)
{
	const char *text = next_word(line);
	const size_t n = strlen(text);
	uint64_t bits = 1;

	if (n == 0 || n > (is_long ? 47u : 6u) || strspn(text, "01") != n)
		line->wrong = true;
	for (size_t i = 0; i < n && !line->wrong; i++)
		bits = bits << 1 | (text[i] == '1');
	if (is_long) {
		put_value(w, 0xa302, 2);
		put_value(w, bits, 6);
	} else {
		put_value(w, bits << 1, 1);
	}
}

static void put_ip(struct writer *w, uint8_t opcode, const char *suffix, struct line *line)
{
	static const struct {
		const char *suffix;
		uint8_t compression, size;
	} forms[] = { { "", 3, 6 },   { "0", 0, 0 },  { "16", 1, 2 },
		      { "32", 2, 4 }, { "48", 4, 6 }, { "64", 6, 8 } };

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (strcmp(suffix, forms[i].suffix) != 0)
			continue;
		put_value(w, opcode | (uint8_t)(forms[i].compression << 5), 1);
		if (forms[i].size > 0)
			put_value(w, read_number(line), forms[i].size);
		return;
	}
	line->wrong = true;
}

static void put_mode_exec(struct writer *w, struct line *line)
{
	const char *bits = next_word(line);
	uint8_t mode = 0;

	if (strcmp(bits, "64") == 0)
		mode = 0x01;
	else if (strcmp(bits, "32") == 0)
		mode = 0x02;
	else if (strcmp(bits, "16") != 0)
		line->wrong = true;
	put_value(w, 0x99, 1);
	put_value(w, mode | (take_flag(line, "if") ? 0x04 : 0), 1);
}

static void put_mode_tsx(struct writer *w, struct line *line)
{
	put_value(w, 0x99, 1);
	if (take_flag(line, "begin"))
		put_value(w, 0x21, 1);
	else if (take_flag(line, "abort"))
		put_value(w, 0x22, 1);
	else if (take_flag(line, "commit"))
		put_value(w, 0x20, 1);
	else
		line->wrong = true;
}

static void put_pip(struct writer *w, struct line *line)
{
	const uint64_t cr3 = read_number(line);

	put_value(w, 0x4302, 2);
	put_value(w, cr3 >> 5 << 1 | take_flag(line, "nr"), 6);
}

static void put_ptw(struct writer *w, struct line *line, size_t size)
{
	const uint64_t payload = read_number(line);

	put_value(w, 0x02, 1);
	put_value(w, (size == 8 ? 0x32 : 0x12) | (take_flag(line, "ip") ? 0x80 : 0), 1);
	put_value(w, payload, size);
}

static void put_mwait(struct writer *w, struct line *line)
{
	put_value(w, 0xc202, 2);
	put_value(w, read_number(line), 4);
	put_value(w, read_number(line), 4);
}

static void put_pwre(struct writer *w, struct line *line)
{
	const uint64_t state = read_number(line), sub = read_number(line);

	put_value(w, 0x2202, 2);
	put_value(w, take_flag(line, "hw") ? 0x80 : 0, 1);
	put_value(w, state << 4 | sub, 1);
}

static void put_pwrx(struct writer *w, struct line *line)
{
	const uint64_t last = read_number(line), deepest = read_number(line);

	put_value(w, 0xa202, 2);
	put_value(w, last << 4 | deepest, 1);
	put_value(w,
		  take_flag(line, "interrupt")    ? 0x01
		  : take_flag(line, "store")      ? 0x04
		  : take_flag(line, "autonomous") ? 0x08
						  : 0,
		  1);
	put_value(w, 0, 3);
}

static void put_bbp(struct writer *w, struct line *line)
{
	const uint64_t type = read_number(line);

	short_items = take_flag(line, "4");
	put_value(w, 0x6302, 2);
	put_value(w, type | (short_items ? 0x80 : 0), 1);
}

static void put_bip(struct writer *w, struct line *line)
{
	put_value(w, read_number(line) << 3 | 0x04, 1);
	put_value(w, read_number(line), short_items ? 4 : 8);
}

static void put_cfe(struct writer *w, struct line *line)
{
	const uint64_t type = read_number(line), vector = read_number(line);

	put_value(w, 0x1302, 2);
	put_value(w, type | (take_flag(line, "ip") ? 0x80 : 0), 1);
	put_value(w, vector, 1);
}

static void put_trig(struct writer *w, struct line *line)
{
	const uint64_t triggers = read_number(line);
	const uint8_t flags =
	    (take_flag(line, "ip") ? 0x80 : 0) | (take_flag(line, "more") ? 0x20 : 0);
	const bool counts = line->n_used < line->n;

	put_value(w, 0xd9, 1);
	put_value(w, flags | (counts ? 0x40 : 0), 1);
	put_value(w, triggers, 1);
	if (counts)
		put_value(w, read_number(line), 2);
}

static void put_numbers(struct writer *w, struct line *line, uint64_t opcode, size_t opcode_size,
			size_t size)
{
	put_value(w, opcode, opcode_size);
	put_value(w, read_number(line), size);
}

static void put_tma(struct writer *w, struct line *line)
{
	put_value(w, 0x7302, 2);
	put_value(w, read_number(line), 3);
	put_value(w, read_number(line), 2);
}

static void put_bytes(struct writer *w, struct line *line)
{
	while (line->n_used < line->n && !line->wrong)
		put_value(w, read_number(line), 1);
}

/* Packets with an IP, whose names go on with how much of it they have. */
static bool put_ip_packet(struct writer *w, const char *name, struct line *line)
{
	static const struct {
		const char *name;
		uint8_t opcode;
	} packets[] = {
		{ "tip.pge", 0x11 }, { "tip.pgd", 0x01 }, { "tip", 0x0d }, { "fup", 0x1d }
	};

	for (size_t i = 0; i < ARRAY_LEN(packets); i++) {
		const size_t n = strlen(packets[i].name);

		if (strncmp(name, packets[i].name, n) == 0) {
			put_ip(w, packets[i].opcode, name + n, line);
			return true;
		}
	}
	return false;
}

static void put_packet(struct writer *w, const char *name, struct line *line)
{
	const struct {
		const char *name;
		void (*put)(struct writer *w, struct line *line);
	} special[] = {
		{ "mode.exec", put_mode_exec },
		{ "mode.tsx", put_mode_tsx },
		{ "pip", put_pip },
		{ "mwait", put_mwait },
		{ "pwre", put_pwre },
		{ "pwrx", put_pwrx },
		{ "bbp", put_bbp },
		{ "bip", put_bip },
		{ "cfe", put_cfe },
		{ "trig", put_trig },
		{ "tma", put_tma },
		{ "bytes", put_bytes },
	};
	const struct {
		const char *name;
		uint64_t opcode;
		size_t opcode_size, size;
	} plain[] = {
		{ "pad", 0x00, 1, 0 },    { "psbend", 0x2302, 2, 0 }, { "ovf", 0xf302, 2, 0 },
		{ "stop", 0x8302, 2, 0 }, { "tsc", 0x19, 1, 7 },      { "mtc", 0x59, 1, 1 },
		{ "cbr", 0x0302, 2, 2 },  { "mnt", 0x88c302, 3, 8 },  { "vmcs", 0xc802, 2, 5 },
	};

	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (strcmp(name, special[i].name) == 0) {
			special[i].put(w, line);
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (strcmp(name, plain[i].name) == 0) {
			if (plain[i].size > 0)
				put_numbers(w, line, plain[i].opcode, plain[i].opcode_size,
					    plain[i].size);
			else
				put_value(w, plain[i].opcode, plain[i].opcode_size);
			return;
		}

	if (strcmp(name, "psb") == 0)
		put_psb(w);
	else if (strcmp(name, "cyc") == 0)
		put_cyc(w, read_number(line));
	else if (strcmp(name, "tnt") == 0 || strcmp(name, "tnt64") == 0)
		put_tnt(w, line, name[3]);
	else if (strcmp(name, "ptw4") == 0 || strcmp(name, "ptw8") == 0)
		put_ptw(w, line, name[3] == '8' ? 8 : 4);
	else if (strcmp(name, "exstop") == 0)
		put_value(w, take_flag(line, "ip") ? 0xe202 : 0x6202, 2);
	else if (strcmp(name, "bep") == 0)
		put_value(w, take_flag(line, "ip") ? 0xb302 : 0x3302, 2);
	else if (strcmp(name, "evd") == 0)
		put_numbers(w, line, 0x5302 | read_number(line) << 16, 3, 8);
	else if (!put_ip_packet(w, name, line))
		line->wrong = true;
}

int packets_write(const char *text, uint8_t ret_bytes[static 64])
{
	struct writer w = { .bytes = ret_bytes };
	struct line line;

	split_line(text, &line);
	if (!line.wrong)
		put_packet(&w, next_word(&line), &line);
	return line.wrong || line.n_used != line.n ? -EINVAL : (int)w.n;
}
