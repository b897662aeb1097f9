/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/manifest.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/file/reading.h"
#include "decoder/file/sums.h"
#include "decoder/file/textline.h"
#include "ptd/snapshot.h"
#include "util/message.h"

struct checker {
	int dir_fd;
	const char *dir;
	char **reterr_message;
};

#define complain(c, r, format, ...) \
	message_set((c)->reterr_message, (r), "%s: " format, (c)->dir, ##__VA_ARGS__)

static int parse_offset(const struct checker *c, const char *key, const char *value,
			int64_t *ret_offset)
{
	long long n;
	char *end;

	errno = 0;
	n = strtoll(value, &end, 10);
	if (errno || end == value || *end)
		return complain(c, -EBADMSG,
				PTD_SNAPSHOT_MANIFEST ": %s=%s: expected a number of nanoseconds",
				key, value);
	*ret_offset = n;
	return 0;
}

static int parse_count(const struct checker *c, const char *key, const char *value,
		       uint64_t *ret_count)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno || !isdigit((unsigned char)*value) || *end)
		return complain(c, -EBADMSG, PTD_SNAPSHOT_MANIFEST ": %s=%s: expected a number",
				key, value);
	*ret_count = n;
	return 0;
}

void manifest_deinit(struct manifest *manifest)
{
	map_deinit(&manifest->switches_since);
	map_deinit(&manifest->scope);
	free(manifest->complaint);
}

uint64_t manifest_since(const struct manifest *manifest, uint32_t cpu)
{
	const uint64_t *since = map_get(&manifest->switches_since, cpu);

	return since && *since > manifest->sideband_since_ns ? *since : manifest->sideband_since_ns;
}

/*
 * Keys of one CPU: cpu.N.KEY. The oldest switch record matters if it is said, later, that others
 * are missing; without any, nothing of the CPU is known.
 */
static int parse_cpu(const struct checker *c, const char *key, const char *value,
		     struct manifest *m, uint64_t *oldest)
{
	unsigned cpu;
	int64_t time;
	int at = 0, r;

	if (sscanf(key, "cpu.%u.%n", &cpu, &at) != 1 || at == 0)
		return 0;
	if (strcmp(key + at, PTD_MANIFEST_SWITCH_OLDEST) == 0) {
		r = parse_offset(c, key, value, &time);
		*oldest = r < 0 ? 0 : (uint64_t)time;
		return r;
	}
	if (strcmp(key + at, PTD_MANIFEST_SWITCH_COMPLETE) != 0 || strcmp(value, "no") != 0)
		return 0;
	return map_put(&m->switches_since, cpu, *oldest ? *oldest : UINT64_MAX);
}

/* Keys that say whether records are missing: sideband_since_ns.UID of one user; and sideband_lost
 * and sideband_unread, which have no time. */
static int parse_missing(const struct checker *c, const char *key, const char *value,
			 struct manifest *m)
{
	static const char prefix[] = PTD_MANIFEST_SIDEBAND_SINCE ".";
	uint64_t n_lost = 0;
	int64_t time;
	int r;

	if (strcmp(key, PTD_MANIFEST_SIDEBAND_LOST) == 0 ||
	    strcmp(key, PTD_MANIFEST_SIDEBAND_UNREAD) == 0) {
		r = parse_count(c, key, value, &n_lost);
		if (n_lost > 0)
			m->dropped_until_ns = UINT64_MAX;
		m->has_unread |= n_lost > 0 && strcmp(key, PTD_MANIFEST_SIDEBAND_UNREAD) == 0;
		return r;
	}
	if (strncmp(key, prefix, strlen(prefix)) != 0)
		return 0;
	r = parse_offset(c, key, value, &time);
	if (r == 0 && (uint64_t)time > m->dropped_until_ns)
		m->dropped_until_ns = (uint64_t)time;
	return r;
}

static int parse_scope(const struct checker *c, const char *value, struct manifest *m)
{
	m->has_scope = true;
	for (;;) {
		unsigned long pid;
		char *end;
		int r;

		errno = 0;
		pid = strtoul(value, &end, 10);
		if (errno || !isdigit((unsigned char)*value) || pid >= UINT32_MAX ||
		    (*end && *end != ','))
			return complain(c, -EBADMSG,
					PTD_SNAPSHOT_MANIFEST ": " PTD_MANIFEST_SCOPE_PIDS
							      ": expected the numbers of processes "
							      "and commas, not '%s'",
					value);
		r = map_put(&m->scope, pid, 1);
		if (r < 0)
			return complain(c, r, PTD_SNAPSHOT_MANIFEST ": %s", strerror(-r));
		if (!*end)
			return 0;
		value = end + 1;
	}
}

static int parse_manifest(const struct checker *c, const struct mapfile *file, struct manifest *m)
{
	struct cursor lines = textline_first(file);
	uint64_t oldest = 0;
	char line[TEXTLINE_SIZE_MAX];
	char *value;
	int r;

	for (size_t n = 1; (r = textline_next(&lines, line)) != -ENODATA; n++) {
		value = r < 0 ? NULL : strchr(line, '=');
		if (!value)
			return complain(c, -EBADMSG,
					PTD_SNAPSHOT_MANIFEST " line %zu: expected key=value", n);
		*value++ = 0;

		if (n == 1 && (strcmp(line, PTD_MANIFEST_FORMAT) != 0 ||
			       strcmp(value, PTD_SNAPSHOT_FORMAT) != 0))
			return complain(
			    c, -EOPNOTSUPP,
			    PTD_SNAPSHOT_MANIFEST
			    " begins with %s=%s; this program reads " PTD_MANIFEST_FORMAT
			    "=" PTD_SNAPSHOT_FORMAT,
			    line, value);
		if (strcmp(line, PTD_MANIFEST_CLOCK) == 0)
			r = parse_offset(c, line, value, (int64_t *)&m->taken_ns);
		else if (strcmp(line, PTD_MANIFEST_REALTIME_OFFSET) == 0)
			r = parse_offset(c, line, value, &m->realtime_offset_ns);
		else if (strcmp(line, PTD_MANIFEST_MONOTONIC_OFFSET) == 0)
			r = parse_offset(c, line, value, &m->monotonic_offset_ns);
		else if (strcmp(line, PTD_MANIFEST_SIDEBAND_SINCE) == 0)
			r = parse_offset(c, line, value, (int64_t *)&m->sideband_since_ns);
		else if (strcmp(line, PTD_MANIFEST_COMPLETE_SINCE) == 0)
			r = parse_offset(c, line, value, (int64_t *)&m->complete_since_ns);
		else if (strcmp(line, PTD_MANIFEST_COMPLETE_UNTIL) == 0)
			r = parse_offset(c, line, value, (int64_t *)&m->complete_until_ns);
		else if (strcmp(line, PTD_MANIFEST_OVERWRITTEN) == 0)
			r = parse_count(c, line, value, &m->bytes_overwritten);
		else if (strcmp(line, PTD_MANIFEST_SCOPE_PIDS) == 0)
			r = parse_scope(c, value, m);
		else
			r = parse_cpu(c, line, value, m, &oldest);
		if (r == 0)
			r = parse_missing(c, line, value, m);
		if (r < 0)
			return r;
	}

	if (file->size == 0)
		return complain(c, -EBADMSG, PTD_SNAPSHOT_MANIFEST " is empty");
	return 0;
}

/* Map one of the two files. Return: 1 if it is there, 0 if not, or negative errno. */
static int map_if_there(const struct checker *c, const char *name, struct mapfile *ret_file)
{
	int r;

	r = mapfile_read(ret_file, c->dir_fd, name);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return complain(c, r, "cannot read %s: %s", name, strerror(-r));
	return 1;
}

/* Return: 0; -EKEYREJECTED if a file is missing or another one; or another negative errno. */
static int check_whole(const struct checker *c, bool has_manifest, bool has_sums,
		       const struct mapfile *sums, struct reading *reading)
{
	if (has_manifest != has_sums)
		return complain(c, -EKEYREJECTED,
				"%s is missing: the snapshot is not whole (--force decodes it all "
				"the same)",
				has_sums ? PTD_SNAPSHOT_MANIFEST : PTD_SNAPSHOT_SUMS);
	return has_sums ? sums_check(c->dir_fd, c->dir, sums, reading, c->reterr_message) : 0;
}

/* What is wrong with the files is a warning. Return: 0, or @r if something else keeps us. */
static int forgive(const struct checker *c, struct manifest *m, int r)
{
	char **message = c->reterr_message;
	char *hint;

	if (r == -ENOMEM || r == -ECANCELED || !*message)
		return r;
	hint = strstr(*message, " (--force");
	if (hint)
		*hint = '\0';
	/* Whoever shows it says of which snapshot. */
	m->complaint = strdup(*message + strlen(c->dir) + 2);
	free(TAKE(*message));
	return m->complaint ? 0 : -ENOMEM;
}

/* Return: whether the manifest, which is not checked yet, says that the snapshot is about some
 * processes. */
static bool names_scope(const struct mapfile *manifest)
{
	static const char key[] = "\n" PTD_MANIFEST_SCOPE_PIDS "=";

	return manifest->size > 0 && memmem(manifest->bytes, manifest->size, key, strlen(key));
}

int manifest_read(int dir_fd, const char *dir, bool force, struct reading *reading,
		  struct manifest *ret_manifest, char **reterr_message)
{
	const struct checker c = { .dir_fd = dir_fd, .dir = dir, .reterr_message = reterr_message };
	_cleanup_(mapfile_deinit) struct mapfile manifest = {}, sums = {};
	struct reading whole = { .threads = reading ? reading->threads : NULL };
	struct manifest m = { .is_there = true };
	int has_manifest, has_sums, r;

	has_manifest = map_if_there(&c, PTD_SNAPSHOT_MANIFEST, &manifest);
	if (has_manifest < 0)
		return has_manifest;
	has_sums = map_if_there(&c, PTD_SNAPSHOT_SUMS, &sums);
	if (has_sums < 0)
		return has_sums;

	if (reading && !reading->all_processes && names_scope(&manifest))
		reading->is_part = true;
	r = check_whole(&c, has_manifest, has_sums, &sums, force ? &whole : reading);
	if (r < 0 && force)
		r = forgive(&c, &m, r);
	if (r < 0)
		return r;
	if (!has_manifest) {
		*ret_manifest = (struct manifest){ .complaint = m.complaint };
		return 0;
	}
	r = parse_manifest(&c, &manifest, &m);
	if (r < 0) {
		manifest_deinit(&m);
		return r;
	}
	*ret_manifest = m;
	return 0;
}
