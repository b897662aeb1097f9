/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovniclock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024
#define LOOM_PREFIX    "loom."

/* Parse a number of ns. Return: 0 or -EBADMSG. */
static int parse_offset(const char *text, int64_t *ret_ns)
{
	const double limit = 0x1p62;
	char *end;
	double ns;

	ns = strtod(text, &end);
	if (end == text || *end || !(ns > -limit && ns < limit))
		return -EBADMSG;
	*ret_ns = (int64_t)ns;
	return 0;
}

/* Parse a line, which is changed. Return: 0, also if it is empty; -EBADMSG; or -ENOMEM. */
static int parse_line(struct ovniclock *clock, char *line)
{
	struct ovniclock_host host = {};
	char *fields[5], *rest = line;
	size_t n = 0;
	int64_t unused;

	for (char *field; (field = strtok_r(rest, " \t\r", &rest));) {
		if (n == ARRAY_LEN(fields))
			return -EBADMSG;
		fields[n++] = field;
	}
	if (n == 0)
		return 0;
	if (n < ARRAY_LEN(fields) || parse_offset(fields[0], &unused) < 0 ||
	    strlen(fields[1]) >= sizeof(host.name) ||
	    parse_offset(fields[2], &host.offset_ns) < 0 || parse_offset(fields[3], &unused) < 0 ||
	    parse_offset(fields[4], &unused) < 0)
		return -EBADMSG;
	memcpy(host.name, fields[1], strlen(fields[1]) + 1);
	return vec_push(&clock->hosts, host);
}

int ovniclock_parse(struct ovniclock *clock, const char *text, size_t size,
		    unsigned int *reterr_line)
{
	const char *end = text + size;
	char line[LINE_MAX_BYTES];
	int r = 0;

	for (*reterr_line = 1; r == 0 && text < end; ++*reterr_line) {
		const char *newline = memchr(text, '\n', (size_t)(end - text)) ?: end;
		const size_t n = (size_t)(newline - text);

		if (n >= sizeof(line))
			return -EBADMSG;
		memcpy(line, text, n);
		line[n] = '\0';
		/* The first line has the titles. */
		if (*reterr_line > 1)
			r = strlen(line) == n ? parse_line(clock, line) : -EBADMSG;
		if (r < 0)
			return r;
		text = newline + 1;
	}
	return r;
}

void ovniclock_deinit(struct ovniclock *clock)
{
	vec_deinit(&clock->hosts);
}

const int64_t *ovniclock_find(const struct ovniclock *clock, const char *loom)
{
	const size_t n_prefix = strlen(LOOM_PREFIX);
	size_t n;

	if (strncmp(loom, LOOM_PREFIX, n_prefix) == 0)
		loom += n_prefix;
	n = strcspn(loom, ".");
	for (size_t i = 0; i < clock->hosts.n; i++) {
		const struct ovniclock_host *host = &clock->hosts.items[i];

		if (strncmp(host->name, loom, n) == 0 && host->name[n] == '\0')
			return &host->offset_ns;
	}
	return NULL;
}
