/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/trigger/triggerfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "util/number.h"
#include "util/regular.h"

/* More than the longest line has. */
#define LINE_SIZE (TRIGGERS_CONDITION_MAX + 256)

/* Cut the next field off. Return: the field; NULL if there is none. */
static char *next_field(char **rest)
{
	char *field = strsep(rest, "\t");

	return field && field[0] ? field : NULL;
}

static bool read_number(char **rest, uint64_t max, uint64_t *ret_number)
{
	const char *field = next_field(rest);

	return field && number_parse(field, max, ret_number) == 0;
}

static bool read_string(const char *field, char *ret_text, size_t size)
{
	if (!field || strlen(field) >= size)
		return false;
	strcpy(ret_text, field);
	return true;
}

/* Parse @line, which is changed. Return: whether it makes sense. */
static bool parse_line(char *line, struct trigger_state *ret_state)
{
	struct trigger_state s = {};
	uint64_t id, count, taken, uid;
	char *rest = line;

	if (!read_number(&rest, UINT32_MAX, &id) || !read_number(&rest, UINT32_MAX, &count) ||
	    !read_number(&rest, UINT32_MAX, &taken) ||
	    !read_number(&rest, UINT64_MAX, &s.wish.interval_ns) ||
	    !read_number(&rest, UINT64_MAX, &s.wish.delay_ns) ||
	    !read_number(&rest, UINT32_MAX, &uid) ||
	    !read_string(next_field(&rest), s.wish.comm, sizeof(s.wish.comm)) ||
	    !read_string(next_field(&rest), s.wish.condition, sizeof(s.wish.condition)) || rest ||
	    id == 0 || taken >= count)
		return false;
	if (strcmp(s.wish.comm, "-") == 0)
		s.wish.comm[0] = '\0';
	s.id = (uint32_t)id;
	s.wish.count = (uint32_t)count;
	s.n_taken = (uint32_t)taken;
	s.uid = (uid_t)uid;
	*ret_state = s;
	return true;
}

int triggerfile_read(const char *path, struct trigger_state *ret_states, size_t *ret_n)
{
	const int fd = regular_open(AT_FDCWD, path, O_NOFOLLOW);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[LINE_SIZE];
	unsigned number = 0;
	int r = 0;

	*ret_n = 0;
	if (fd == -ENOENT)
		return 0;
	if (!f) {
		r = fd < 0 ? fd : -errno;
		(void)fd_close(fd);
		return r;
	}
	while (*ret_n < TRIGGERS_MAX && fgets(line, sizeof(line), f)) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (parse_line(line, &ret_states[*ret_n]))
			(*ret_n)++;
		else
			log_warning("%s: line %u: is no trigger, ignoring", path, number);
	}
	if (ferror(f))
		r = -EIO;
	(void)fclose(f);
	return r;
}

/* Close @fd, too. */
static int write_lines(int fd, const struct trigger_state *states, size_t n)
{
	FILE *f = fdopen(fd, "w");
	int r = 0;

	if (!f) {
		r = -errno;
		(void)fd_close(fd);
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		const struct trigger_state *s = &states[i];

		fprintf(f,
			"%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64
			"\t%u\t%s\t%s\n",
			s->id, s->wish.count, s->n_taken, s->wish.interval_ns, s->wish.delay_ns,
			(unsigned)s->uid, s->wish.comm[0] ? s->wish.comm : "-", s->wish.condition);
	}
	if (fflush(f) != 0 || ferror(f) || fsync(fileno(f)) < 0)
		r = errno > 0 ? -errno : -EIO;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	return r;
}

int triggerfile_write(const char *path, const struct trigger_state *states, size_t n)
{
	_cleanup_(freep) char *temporary = NULL;
	int fd, r;

	if (asprintf(&temporary, "%s.new", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	r = fd < 0 ? -errno : write_lines(fd, states, n);
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(temporary);
	return r;
}
