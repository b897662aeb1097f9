/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "ctl/client.h"
#include "ctl/verb.h"
#include "util/message.h"

#define NS_PER_S      UINT64_C(1000000000)
#define SHOW_TIME_MAX 64

const char *show_size(uint64_t bytes, char ret_text[static SHOW_SIZE_MAX])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double n = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		(void)snprintf(ret_text, SHOW_SIZE_MAX, "%" PRIu64 " B", bytes);
		return ret_text;
	}
	for (n /= 1024; n >= 1024 && i + 1 < ARRAY_LEN(units); n /= 1024)
		i++;
	(void)snprintf(ret_text, SHOW_SIZE_MAX, "%.1f %s", n, units[i]);
	return ret_text;
}

/* Write a time of CLOCK_MONOTONIC in UTC. */
static const char *show_time(uint64_t ns, char ret_text[static SHOW_TIME_MAX])
{
	const uint64_t realtime = clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - ns);
	const time_t seconds = (time_t)(realtime / NS_PER_S);
	char text[32] = "?";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%F %T", &tm);
	(void)snprintf(ret_text, SHOW_TIME_MAX, "%s.%06" PRIu64 " UTC", text,
		       realtime % NS_PER_S / 1000);
	return ret_text;
}

static void show_overwritten(const struct client_snapshot *s, uint64_t since_ns)
{
	char size[SHOW_SIZE_MAX], time[SHOW_TIME_MAX];

	show_size(s->bytes_overwritten, size);
	show_time(s->complete_since_ns, time);
	if (since_ns == 0)
		log_notice("it is complete since %s, its last %.3f s: %s of PT before that were "
			   "overwritten",
			   time, (double)(s->taken_ns - s->complete_since_ns) / NS_PER_S, size);
	else if (s->complete_since_ns > since_ns)
		log_warning(
		    "the beginning was overwritten, %s of PT: the recording is complete since "
		    "%s, %.3f s after the program was started (see AuxSize= in ptd.conf(5))",
		    size, time, (double)(s->complete_since_ns - since_ns) / NS_PER_S);
}

int show_without_room(const struct client_snapshot *snapshot)
{
	if (snapshot->n_without_room == 0)
		return EXIT_OK;
	log_error("no room to keep %" PRIu32 " file%s that ran: without them the snapshot cannot "
		  "be decoded, but on a machine that has the same files; free some of the disk, or "
		  "lower KeepFree= (see ptd.conf(5))",
		  snapshot->n_without_room, plural(snapshot->n_without_room));
	return EXIT_NO_ROOM;
}

void show_taken(const struct client_snapshot *snapshot, const char *output, uint64_t since_ns)
{
	char size[SHOW_SIZE_MAX];

	log_notice("snapshot %s: %s of PT in %s%s", snapshot->id,
		   show_size(snapshot->bytes_pt, size), output ? output : snapshot->path,
		   snapshot->bytes_pt == 0 ? ": nothing was being recorded" : "");
	if (snapshot->complete_since_ns > 0)
		show_overwritten(snapshot, since_ns);
	if (snapshot->n_missing > 0)
		log_warning("%" PRIu32 " object%s missing in it: see its objects.map",
			    snapshot->n_missing, plural(snapshot->n_missing));
}

/* Return: the code point of a control character that takes one byte, or two in UTF-8 (C1); U+FFFD
 * for bytes that are not UTF-8. */
static unsigned code_point(const char *s, size_t *ret_size)
{
	const uint8_t *b = (const uint8_t *)s;

	*ret_size = b[0] == 0xc2 && b[1] >= 0x80 && b[1] < 0xa0 ? 2 : 1;
	if (*ret_size == 2)
		return b[1];
	return b[0] < 0x80 ? b[0] : 0xfffd;
}

void show_json_string(FILE *f, const char *s)
{
	size_t n, rest = strlen(s);

	fputc('"', f);
	for (; rest > 0; s += n, rest -= n) {
		n = printable_size(s, rest);
		if (n == 0)
			fprintf(f, "\\u%04x", code_point(s, &n));
		else if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else
			fwrite(s, n, 1, f);
	}
	fputc('"', f);
}

void show_pair(struct show_pairs *pairs, const char *key, const char *value)
{
	_cleanup_(freep) char *line = NULL;

	if (!value)
		return;
	if (pairs->json) {
		putchar(pairs->has_some ? ',' : '{');
		show_json_string(stdout, key);
		putchar(':');
		show_json_string(stdout, value);
		pairs->has_some = true;
		return;
	}
	line = message_text("%26s: %s", key, value);
	if (line)
		printable_clean(line, strlen(line));
	puts(line ?: key);
}

void show_pairs_end(const struct show_pairs *pairs)
{
	if (pairs->json)
		puts(pairs->has_some ? "}" : "{}");
}

static int print_basic(FILE *f, sd_bus_message *m, char type)
{
	union {
		const char *s;
		uint64_t t;
		uint32_t u;
		int b;
	} value;
	const int r = sd_bus_message_read_basic(m, type, &value);

	if (r < 0)
		return r;
	switch (type) {
	case 's':
		show_json_string(f, value.s);
		return 0;
	case 't':
		fprintf(f, "%" PRIu64, value.t);
		return 0;
	case 'u':
		fprintf(f, "%" PRIu32, value.u);
		return 0;
	case 'b':
		fputs(value.b ? "true" : "false", f);
		return 0;
	default:
		return -EBADMSG;
	}
}

static int print_items(FILE *f, sd_bus_message *m, const char *separator)
{
	const char *contents, *between = "";
	char type;
	int r;

	while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
		fputs(between, f);
		between = separator;
		if (type == 'a' || type == 'v' || type == 'e') {
			const bool is_dict = type == 'a' && contents[0] == '{';
			const bool is_array = type == 'a' && !is_dict;

			r = sd_bus_message_enter_container(m, type, contents);
			fputs(is_dict ? "{" : is_array ? "[" : "", f);
			if (r >= 0)
				r = print_items(f, m, type == 'e' ? ":" : ",");
			fputs(is_dict ? "}" : is_array ? "]" : "", f);
			if (r >= 0)
				r = sd_bus_message_exit_container(m);
		} else {
			r = print_basic(f, m, type);
		}
		if (r < 0)
			return r;
	}
	return r;
}

int show_json(FILE *f, sd_bus_message *message)
{
	const int r = print_items(f, message, ",");

	fputc('\n', f);
	return r;
}

int show_reply(FILE *f, sd_bus_message *reply, const char *method)
{
	int r = sd_bus_message_rewind(reply, true);

	if (r >= 0)
		r = show_json(f, reply);
	return r < 0 ? client_bad_reply(method, r) : EXIT_OK;
}
