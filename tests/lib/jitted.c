/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/jitted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "ptd/snapshot.h"
#include "util/mapfile.h"
#include "util/vec.h"

#define MAGIC 0x4a695444

enum {
	RECORD_LOAD = 0,
	RECORD_MOVE = 1,
};

struct code {
	uint64_t time;
	uint64_t start;
	uint64_t size;
	const uint8_t *bytes;
	uint64_t index; /* the compiler's number for it */
	size_t order;   /* among those of one time */
};

/* A process's. */
struct process {
	uint32_t pid;
	VEC(struct code) noted;  /* by time */
	VEC(struct code) memory; /* in no order */
};

struct jitted {
	VEC(struct mapfile) files;
	VEC(struct process) processes;
};

static struct process *process_of(const struct jitted *j, uint32_t pid)
{
	for (size_t i = 0; i < j->processes.n; i++)
		if (j->processes.items[i].pid == pid)
			return &j->processes.items[i];
	return NULL;
}

static int make_process(struct jitted *j, uint32_t pid, struct process **ret_process)
{
	*ret_process = process_of(j, pid);
	if (*ret_process)
		return 0;
	if (vec_push(&j->processes, { .pid = pid }) < 0)
		return -ENOMEM;
	*ret_process = &j->processes.items[j->processes.n - 1];
	return 0;
}

/* --- jitdumps --------------------------------------------------------------------------------- */

static int add_load(struct process *p, uint64_t time, struct cursor *record)
{
	struct {
		uint32_t pid, tid;
		uint64_t vma, address, size, index;
	} load;
	struct cursor code;
	uint8_t c = 1;

	if (cursor_get(record, sizeof(load), &load) < 0)
		return 0;
	while (c != 0)
		if (cursor_get(record, 1, &c) < 0)
			return 0;
	if (load.size == 0 || load.size - 1 > UINT64_MAX - load.address ||
	    cursor_get_sub(record, load.size, &code) < 0)
		return 0;
	return vec_push(&p->noted, { .time = time,
				     .start = load.address,
				     .size = load.size,
				     .bytes = code.pos,
				     .index = load.index,
				     .order = p->noted.n });
}

static int add_move(struct process *p, uint64_t time, struct cursor *record)
{
	struct {
		uint32_t pid, tid;
		uint64_t vma, from, to, size, index;
	} move;

	if (cursor_get(record, sizeof(move), &move) < 0)
		return 0;
	for (size_t i = p->noted.n; i > 0; i--) {
		struct code code = p->noted.items[i - 1];

		if (code.index != move.index || move.size > code.size ||
		    code.size > UINT64_MAX - move.to)
			continue;
		code.time = time;
		code.start = move.to;
		code.order = p->noted.n;
		return vec_push(&p->noted, code);
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int read_dump(struct process *p, const struct mapfile *file, int64_t offset_ns)
{
	struct cursor c = cursor_from(file->bytes, file->size), record;
	struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} head;
	struct {
		uint32_t id, size;
		uint64_t time;
	} prefix;
	int r = 0;

	/* With flags its times are not those of the clock that we know. */
	if (cursor_get(&c, sizeof(head), &head) < 0 || head.magic != MAGIC || head.flags != 0 ||
	    head.size < sizeof(head) || cursor_get_sub(&c, head.size - sizeof(head), &record) < 0)
		return 0;
	while (r == 0 && cursor_get(&c, sizeof(prefix), &prefix) == 0 &&
	       prefix.size >= sizeof(prefix) &&
	       cursor_get_sub(&c, prefix.size - sizeof(prefix), &record) == 0) {
		const uint64_t time = prefix.time + (uint64_t)offset_ns;

		if (prefix.id == RECORD_LOAD)
			r = add_load(p, time, &record);
		else if (prefix.id == RECORD_MOVE)
			r = add_move(p, time, &record);
	}
	if (p->noted.n > 0)
		qsort(p->noted.items, p->noted.n, sizeof(*p->noted.items), by_time);
	return r;
}

/* --- the snapshot ----------------------------------------------------------------------------- */

/* The records' clock minus the compilers', as the manifest says. */
static int64_t read_offset(const char *dir)
{
	static const char key[] = "monotonic_offset_ns=";
	char path[8192], line[8192];
	int64_t offset = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/manifest", dir);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			offset = strtoll(line + strlen(key), NULL, 10);
	if (f)
		(void)fclose(f);
	return offset;
}

/* A code log: each piece is taken for memory, whatever its time. */
static int read_log(struct process *p, const struct mapfile *file)
{
	struct cursor c = cursor_from(file->bytes, file->size);
	struct ptd_code_header header;
	struct ptd_code_piece piece;
	int r = 0;

	if (cursor_get(&c, sizeof(header), &header) < 0 || header.magic != PTD_CODE_MAGIC)
		return 0;
	for (uint32_t i = 0; r == 0 && i < header.n_pieces; i++)
		if (cursor_get(&c, sizeof(piece), &piece) == 0 && piece.offset > 0 &&
		    piece.offset <= file->size && piece.size <= file->size - piece.offset)
			r = vec_push(&p->memory, { .start = piece.address,
						   .size = piece.size,
						   .bytes = file->bytes + piece.offset });
	return r;
}

static int read_pages(struct jitted *j, const struct mapfile *file)
{
	struct ptd_pages_piece piece;
	struct process *p;
	int r = 0;

	for (uint64_t at = sizeof(struct ptd_pages_header); r == 0 && at < file->size;
	     at += piece.size) {
		if (file->size - at < sizeof(piece))
			return 0;
		memcpy(&piece, file->bytes + at, sizeof(piece));
		at += sizeof(piece);
		if (piece.size > file->size - at)
			return 0;
		if (make_process(j, piece.pid, &p) < 0)
			return -ENOMEM;
		r = vec_push(
		    &p->memory,
		    { .start = piece.address, .size = piece.size, .bytes = file->bytes + at });
	}
	return r;
}

/* Take the file @name of @dir, if it is one of those we know. */
static int add_file(struct jitted *j, const char *dir, const char *name, int64_t offset_ns)
{
	struct mapfile file;
	struct process *p;
	char path[8500];
	bool is_dump, is_pages;
	uint32_t pid;
	int end = 0;

	is_dump = sscanf(name, "jit-%" SCNu32 ".dump%n", &pid, &end) == 1 && end > 0;
	is_pages = strcmp(name, "pages") == 0;
	if (!is_dump && !is_pages && sscanf(name, "%" SCNu32 "-", &pid) != 1)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (mapfile_read(&file, AT_FDCWD, path) < 0)
		return 0;
	if (vec_push(&j->files, file) < 0) {
		mapfile_deinit(&file);
		return -ENOMEM;
	}
	if (is_pages)
		return read_pages(j, &file);
	if (make_process(j, pid, &p) < 0)
		return -ENOMEM;
	if (is_dump)
		return read_dump(p, &file, offset_ns);
	return read_log(p, &file);
}

static int add_files(struct jitted *j, const char *snapshot, const char *sub, int64_t offset_ns)
{
	const struct dirent *entry;
	char dir[8192];
	DIR *d;
	int r = 0;

	(void)snprintf(dir, sizeof(dir), "%s/%s", snapshot, sub);
	d = opendir(dir);
	while (r == 0 && d && (entry = readdir(d)))
		r = add_file(j, dir, entry->d_name, offset_ns);
	if (d)
		(void)closedir(d);
	return r;
}

int jitted_new(const char *dir, struct jitted **ret_jitted)
{
	_cleanup_(jitted_freep) struct jitted *j = calloc(1, sizeof(*j));
	const int64_t offset_ns = read_offset(dir);

	if (!j || add_files(j, dir, "jit", offset_ns) < 0 || add_files(j, dir, "mem", 0) < 0)
		return -ENOMEM;
	*ret_jitted = TAKE(j);
	return 0;
}

struct jitted *jitted_free(struct jitted *jitted)
{
	if (!jitted)
		return NULL;
	for (size_t i = 0; i < jitted->processes.n; i++) {
		vec_deinit(&jitted->processes.items[i].noted);
		vec_deinit(&jitted->processes.items[i].memory);
	}
	for (size_t i = 0; i < jitted->files.n; i++)
		mapfile_deinit(&jitted->files.items[i]);
	vec_deinit(&jitted->processes);
	vec_deinit(&jitted->files);
	free(jitted);
	return NULL;
}

/* --- looking up ------------------------------------------------------------------------------- */

enum verdict {
	UNKNOWN,
	SAME,
	OTHER,
};

/* The bytes that are looked for, and what is known of each. */
struct sought {
	uint64_t start;
	const uint8_t *bytes;
	size_t size;
	uint8_t *verdicts;
};

/* Judge those bytes that @code has and that are not yet known to be the same; @again: nor other.
 * Return: whether it has any of them. */
static bool judge(const struct sought *s, const struct code *code, bool again)
{
	const uint64_t from = code->start > s->start ? code->start : s->start;
	const uint64_t last_code = code->start + (code->size - 1), last = s->start + (s->size - 1);
	const uint64_t to = last_code < last ? last_code : last;

	if (code->size == 0 || from > to)
		return false;
	for (uint64_t at = from; at <= to; at++) {
		uint8_t *v = &s->verdicts[at - s->start];

		if (*v == UNKNOWN || (again && *v == OTHER))
			*v =
			    s->bytes[at - s->start] == code->bytes[at - code->start] ? SAME : OTHER;
	}
	return true;
}

bool jitted_have(const struct jitted *j, uint32_t pid, uint64_t time, uint64_t address,
		 const uint8_t *bytes, size_t size, uint64_t *from, uint64_t *to)
{
	_cleanup_(freep) uint8_t *verdicts = calloc(1, size);
	const struct sought s = { address, bytes, size, verdicts };
	const struct process *p = process_of(j, pid);
	size_t n; /* noted up to @time */

	if (!p || !verdicts || size - 1 > UINT64_MAX - address)
		return false;
	for (n = 0; n < p->noted.n && p->noted.items[n].time <= time; n++)
		;
	for (size_t i = n; i > 0; i--) {
		const struct code *code = &p->noted.items[i - 1];

		if (judge(&s, code, false) && code->time > *from)
			*from = code->time;
	}
	for (size_t i = n; i < p->noted.n; i++) {
		const struct code *code = &p->noted.items[i];

		if (judge(&s, code, false) && code->time < *to)
			*to = code->time;
	}
	for (size_t i = 0; i < p->memory.n; i++)
		(void)judge(&s, &p->memory.items[i], true);
	for (size_t i = 0; i < size; i++)
		if (verdicts[i] != SAME)
			return false;
	return true;
}
