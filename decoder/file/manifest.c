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

#include "base/cursor.h"
#include "ptd/snapshot.h"
#include "util/mapfile.h"
#include "util/message.h"
#include "util/progress.h"
#include "util/regular.h"
#include "util/sha256.h"

#define HEX_SIZE      (SHA256_HEX_SIZE - 1)
#define LINE_SIZE_MAX (PATH_MAX + SHA256_HEX_SIZE + 2) /* of a line of the sums or manifest */

struct checker {
	int dir_fd;
	const char *dir;
	struct progress *progress; /* or NULL */
	char **reterr_message;
};

#define complain(c, r, format, ...) \
	message_set((c)->reterr_message, (r), "%s: " format, (c)->dir, ##__VA_ARGS__)

/* An empty file has no bytes to point at. */
static struct cursor lines_of(const struct mapfile *file)
{
	return file->size ? cursor_from(file->bytes, file->size) : cursor_from("", 0);
}

/*
 * Take the next line, without its newline, as a string. Return: 0; -ENODATA at the end; -EBADMSG if
 * it is too long or holds a NUL.
 */
static int next_line(struct cursor *c, char ret_line[static LINE_SIZE_MAX])
{
	const size_t left = cursor_left(c);
	const uint8_t *newline;
	size_t size;
	uint8_t end;

	if (left == 0)
		return -ENODATA;
	newline = memchr(c->pos, '\n', left);
	size = newline ? (size_t)(newline - c->pos) : left;
	if (size >= LINE_SIZE_MAX || memchr(c->pos, 0, size))
		return -EBADMSG;

	ret_line[size] = 0;
	return cursor_get(c, size, ret_line) ?: newline ? cursor_get(c, 1, &end) : 0;
}

/* A name in the sums may not lead out of the snapshot. */
static bool path_is_inside(const char *path)
{
	if (path[0] == '/' || path[0] == 0)
		return false;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0 && (at[2] == 0 || at[2] == '/'))
			return false;
	}
	return true;
}

static int check_file(const struct checker *c, const char *path, const char *expected)
{
	_cleanup_(fd_closep) int fd = -1;
	char hex[SHA256_HEX_SIZE];
	uint64_t size;
	int r;

	fd = regular_open(c->dir_fd, path, 0);
	if (fd == -ENOENT)
		return complain(c, -EKEYREJECTED,
				"%s is missing, but is in " PTD_SNAPSHOT_SUMS
				": the snapshot is not whole (--force decodes it all the same)",
				path);
	r = fd < 0 ? fd : sha256_fd(fd, NULL, c->progress, hex, &size);
	if (r < 0)
		return complain(c, r, "cannot read %s: %s", path, strerror(-r));

	if (strcmp(hex, expected) != 0)
		return complain(
		    c, -EKEYREJECTED,
		    "%s is not the file that was written: its SHA-256 is %s, " PTD_SNAPSHOT_SUMS
		    " says %s (--force decodes it all the same)",
		    path, hex, expected);
	return 0;
}

/* Take one line of the sums apart: the hash in lower-case hex, two characters, the path. */
static bool split_sum(char *line, const char **ret_hash, const char **ret_path)
{
	if (strspn(line, "0123456789abcdef") != HEX_SIZE || line[HEX_SIZE] != ' ')
		return false;
	if (line[HEX_SIZE + 1] != ' ' && line[HEX_SIZE + 1] != '*')
		return false;

	line[HEX_SIZE] = 0;
	*ret_hash = line;
	*ret_path = line + HEX_SIZE + 2;
	return path_is_inside(*ret_path);
}

/* How many bytes there are to hash, as far as the sums can be read. */
static void expect_sums(const struct checker *c, const struct mapfile *sums)
{
	struct cursor lines = lines_of(sums);
	char line[LINE_SIZE_MAX];
	const char *hash, *path;
	struct stat st;

	while (c->progress && next_line(&lines, line) == 0)
		if (split_sum(line, &hash, &path) && fstatat(c->dir_fd, path, &st, 0) == 0)
			progress_expect(c->progress, (uint64_t)st.st_size);
}

static int check_sums(const struct checker *c, const struct mapfile *sums)
{
	struct cursor lines = lines_of(sums);
	bool has_data = false, has_manifest = false;
	char line[LINE_SIZE_MAX];
	const char *hash, *path;
	int r;

	expect_sums(c, sums);
	for (size_t n = 1; (r = next_line(&lines, line)) != -ENODATA; n++) {
		if (r < 0 || !split_sum(line, &hash, &path))
			return complain(c, -EBADMSG,
					PTD_SNAPSHOT_SUMS " line %zu: expected a SHA-256, two "
							  "blanks and a path inside the snapshot",
					n);
		r = check_file(c, path, hash);
		if (r < 0)
			return r;
		has_data = has_data || strcmp(path, PTD_SNAPSHOT_DATA) == 0;
		has_manifest = has_manifest || strcmp(path, PTD_SNAPSHOT_MANIFEST) == 0;
	}

	if (!has_data || !has_manifest)
		return complain(c, -EKEYREJECTED,
				PTD_SNAPSHOT_SUMS
				" does not name %s: the snapshot is not whole (--force decodes it "
				"all the same)",
				has_data ? PTD_SNAPSHOT_MANIFEST : PTD_SNAPSHOT_DATA);
	return 0;
}

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
	struct cursor lines = lines_of(file);
	uint64_t oldest = 0;
	char line[LINE_SIZE_MAX];
	char *value;
	int r;

	for (size_t n = 1; (r = next_line(&lines, line)) != -ENODATA; n++) {
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
		if (strcmp(line, PTD_MANIFEST_REALTIME_OFFSET) == 0)
			r = parse_offset(c, line, value, &m->realtime_offset_ns);
		else if (strcmp(line, PTD_MANIFEST_MONOTONIC_OFFSET) == 0)
			r = parse_offset(c, line, value, &m->monotonic_offset_ns);
		else if (strcmp(line, PTD_MANIFEST_SIDEBAND_SINCE) == 0)
			r = parse_offset(c, line, value, (int64_t *)&m->sideband_since_ns);
		else if (strcmp(line, PTD_MANIFEST_COMPLETE_SINCE) == 0)
			r = parse_offset(c, line, value, (int64_t *)&m->complete_since_ns);
		else if (strcmp(line, PTD_MANIFEST_OVERWRITTEN) == 0)
			r = parse_count(c, line, value, &m->bytes_overwritten);
		else if (strcmp(line, PTD_MANIFEST_SCOPE_PIDS) == 0)
			r = parse_scope(c, value, m);
		else
			r = parse_cpu(c, line, value, m, &oldest);
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

int manifest_read(int dir_fd, const char *dir, bool force, struct progress *progress,
		  struct manifest *ret_manifest, char **reterr_message)
{
	const struct checker c = {
		.dir_fd = dir_fd, .dir = dir, .progress = progress, .reterr_message = reterr_message
	};
	_cleanup_(mapfile_deinit) struct mapfile manifest = {}, sums = {};
	struct manifest m = { .is_there = true };
	int has_manifest, has_sums, r;

	has_manifest = map_if_there(&c, PTD_SNAPSHOT_MANIFEST, &manifest);
	if (has_manifest < 0)
		return has_manifest;
	has_sums = map_if_there(&c, PTD_SNAPSHOT_SUMS, &sums);
	if (has_sums < 0)
		return has_sums;

	if (!force && has_manifest != has_sums)
		return complain(&c, -EKEYREJECTED,
				"%s is missing: the snapshot is not whole (--force decodes it all "
				"the same)",
				has_sums ? PTD_SNAPSHOT_MANIFEST : PTD_SNAPSHOT_SUMS);
	if (!force && has_sums) {
		r = check_sums(&c, &sums);
		if (r < 0)
			return r;
	}
	if (!has_manifest) {
		*ret_manifest = (struct manifest){};
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
