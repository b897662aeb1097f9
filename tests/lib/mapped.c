/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/lib/jitted.h"
#include "tests/lib/poked.h"
#include "tests/lib/recordwalk.h"
#include "util/buildid.h"
#include "util/mapfile.h"
#include "util/vec.h"

#define PARENTS_MAX 64 /* how far back through forks it looks */

struct file {
	char *path; /* as it was mapped */
	struct buildid id;
	struct mapfile map; /* no bytes: not to be had */
};

struct range {
	uint64_t time;
	uint64_t start, size, offset;
	size_t file;
};

/* What one process mapped from a fork or exec on. */
struct memory {
	uint32_t pid;
	uint64_t start;
	size_t parent; /* it began as a copy of; SIZE_MAX: as nothing */
	VEC(struct range) ranges;
};

struct mapped {
	char *dir; /* NULL: not a directory */
	struct mapfile data;
	struct mapfile objects_map;
	struct jitted *jitted; /* NULL: not a directory */
	struct poked *poked;   /* NULL: a bare stream */
	struct recordwalk walk;
	VEC(struct file) files;
	VEC(struct memory) memories;
};

/* Files. */

/* What a file is called at its place. */
static const char *kept_name(const char *path)
{
	return strcmp(path, "[vdso]") == 0 ? "vdso" : "elf";
}

/* Is @text, as objects.map has it, @path? */
static bool is_path(const char *text, const char *path)
{
	for (; *text; text++, path++) {
		const char byte = strncmp(text, "\\012", 4) == 0   ? '\n'
				  : strncmp(text, "\\134", 4) == 0 ? '\\'
								   : *text;

		if (byte != *path)
			return false;
		text += byte == *text ? 0 : 3;
	}
	return !*path;
}

/* The place that objects.map gives for @path; more than one is none. */
static bool kept_place(const struct mapped *m, const char *path, char *ret_place, size_t size)
{
	const char *text = (const char *)m->objects_map.bytes, *end = text + m->objects_map.size;
	bool found = false;
	char line[8192];

	for (const char *newline; text && text < end; text = newline + 1) {
		char place[300];
		char *tab;

		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline || (size_t)(newline - text) >= sizeof(line))
			return false;
		memcpy(line, text, (size_t)(newline - text));
		line[newline - text] = 0;
		tab = strchr(line, '\t');
		if (!tab || !is_path(tab + 1, path) || line[0] == '-')
			continue;
		*tab = 0;
		if (strncmp(line, "sha256:", 7) == 0)
			(void)snprintf(place, sizeof(place), "objects/sha256/%.200s/%s", line + 7,
				       kept_name(path));
		else
			(void)snprintf(place, sizeof(place), "objects/.build-id/%.2s/%.200s/%s",
				       line, line + 2, kept_name(path));
		if (found && strcmp(place, ret_place) != 0)
			return false;
		(void)snprintf(ret_place, size, "%s", place);
		found = true;
	}
	return found;
}

/* Open one place. Return: whether the file is there, and is the one. */
static bool open_place(const char *dir, const char *place, struct file *file)
{
	_cleanup_(fd_closep) int fd = -1;
	struct buildid id;
	char path[9000];
	int r;

	(void)snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", place);
	if (mapfile_read(&file->map, AT_FDCWD, path) < 0)
		return false;
	if (file->id.size == 0)
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	r = buildid_read(fd, &id);
	if (r == 0 && id.size == file->id.size && memcmp(id.bytes, file->id.bytes, id.size) == 0)
		return true;
	mapfile_deinit(&file->map);
	return false;
}

static void open_file(const struct mapped *m, struct file *file)
{
	char hex[BUILDID_HEX_MAX], place[400];

	if (m->dir && file->id.size > 1) {
		buildid_hex(&file->id, hex);
		(void)snprintf(place, sizeof(place), "objects/.build-id/%.2s/%s/%s", hex, hex + 2,
			       kept_name(file->path));
		if (open_place(m->dir, place, file))
			return;
	} else if (m->dir && kept_place(m, file->path, place, sizeof(place))) {
		if (open_place(m->dir, place, file))
			return;
	}
	if (file->path[0] == '/' && file->path[1] != '/')
		(void)open_place("", file->path, file);
}

static int find_file(struct mapped *m, const char *path, const struct buildid *id, size_t *ret_file)
{
	struct file file = { .id = *id };

	for (size_t i = 0; i < m->files.n; i++) {
		const struct file *f = &m->files.items[i];

		if (strcmp(f->path, path) == 0 && f->id.size == id->size &&
		    memcmp(f->id.bytes, id->bytes, id->size) == 0) {
			*ret_file = i;
			return 0;
		}
	}
	file.path = strdup(path);
	if (!file.path)
		return -ENOMEM;
	open_file(m, &file);
	*ret_file = m->files.n;
	return vec_push(&m->files, file);
}

/* Processes. */

/* Return: the index of what @pid has at @time; SIZE_MAX if that is nothing. */
static size_t memory_of(const struct mapped *m, uint32_t pid, uint64_t time)
{
	for (size_t i = m->memories.n; i > 0; i--)
		if (m->memories.items[i - 1].pid == pid && m->memories.items[i - 1].start <= time)
			return i - 1;
	return SIZE_MAX;
}

static int begin_memory(struct mapped *m, uint32_t pid, uint64_t time, size_t parent)
{
	return vec_push(&m->memories, { .pid = pid, .start = time, .parent = parent });
}

static int on_fork(struct mapped *m, const struct recordwalk_record *record)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
	} fork;

	if (record->payload_size < sizeof(fork))
		return 0;
	memcpy(&fork, record->payload, sizeof(fork));
	if (fork.pid == fork.ppid || fork.pid != fork.tid)
		return 0;
	/* perf's own, of time 0, stand for tasks that ran before, all of whose mappings follow. */
	if (record->time == 0)
		return memory_of(m, fork.pid, 0) == SIZE_MAX
			   ? begin_memory(m, fork.pid, 0, SIZE_MAX)
			   : 0;
	return begin_memory(m, fork.pid, record->time,
			    record->misc & PERF_RECORD_MISC_FORK_EXEC
				? SIZE_MAX
				: memory_of(m, fork.ppid, record->time));
}

static int on_comm(struct mapped *m, const struct recordwalk_record *record)
{
	uint32_t pid;

	if (!(record->misc & PERF_RECORD_MISC_COMM_EXEC) || record->payload_size < sizeof(pid))
		return 0;
	memcpy(&pid, record->payload, sizeof(pid));
	return begin_memory(m, pid, record->time, SIZE_MAX);
}

static int on_mmap(struct mapped *m, const struct recordwalk_record *record)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, size, offset;
	} head;
	struct {
		uint8_t id_size, reserved[3], id[20];
		uint32_t prot, flags;
	} tail = { .prot = PROT_EXEC };
	const size_t name = sizeof(head) + (record->type == PERF_RECORD_MMAP2 ? sizeof(tail) : 0);
	struct range range = { .time = record->time };
	struct buildid id = {};
	size_t memory;
	int r;

	if (record->payload_size <= name ||
	    !memchr(record->payload + name, 0, record->payload_size - name) ||
	    (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER ||
	    (record->misc & PERF_RECORD_MISC_MMAP_DATA && record->type == PERF_RECORD_MMAP))
		return 0;
	memcpy(&head, record->payload, sizeof(head));
	if (record->type == PERF_RECORD_MMAP2) {
		memcpy(&tail, record->payload + sizeof(head), sizeof(tail));
		if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && tail.id_size <= 20) {
			id.size = tail.id_size;
			memcpy(id.bytes, tail.id, tail.id_size);
		}
	}
	if (!(tail.prot & PROT_EXEC) || head.size == 0 || head.size - 1 > UINT64_MAX - head.start)
		return 0;

	range.start = head.start;
	range.size = head.size;
	range.offset = head.offset;
	r = find_file(m, (const char *)record->payload + name, &id, &range.file);
	if (r < 0)
		return r;
	memory = memory_of(m, head.pid, record->time);
	if (memory == SIZE_MAX) {
		r = begin_memory(m, head.pid, 0, SIZE_MAX);
		if (r < 0)
			return r;
		memory = m->memories.n - 1;
	}
	return vec_push(&m->memories.items[memory].ranges, range);
}

/* perf inject --guest-data adds records of a guest: their pids and addresses are not the host's. */
static void drop_guests(struct recordwalk *walk)
{
	size_t n = 0;

	for (size_t i = 0; i < walk->records.n; i++) {
		const uint16_t mode = walk->records.items[i].misc & PERF_RECORD_MISC_CPUMODE_MASK;

		if (mode != PERF_RECORD_MISC_GUEST_KERNEL && mode != PERF_RECORD_MISC_GUEST_USER)
			walk->records.items[n++] = walk->records.items[i];
	}
	walk->records.n = n;
}

/* By time, and those of one time in the order of the file. */
static int compare_records(const void *pa, const void *pb)
{
	const struct recordwalk_record *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->offset < b->offset ? -1 : 1;
}

static int read_all(struct mapped *m)
{
	int r = recordwalk_read(m->data.bytes, m->data.size, &m->walk);

	if (r < 0)
		return r;
	drop_guests(&m->walk);
	if (m->walk.records.n)
		qsort(m->walk.records.items, m->walk.records.n, sizeof(*m->walk.records.items),
		      compare_records);
	for (size_t i = 0; i < m->walk.records.n && r == 0; i++) {
		const struct recordwalk_record *record = &m->walk.records.items[i];

		if (record->type == PERF_RECORD_FORK)
			r = on_fork(m, record);
		else if (record->type == PERF_RECORD_COMM)
			r = on_comm(m, record);
		else if (record->type == PERF_RECORD_MMAP || record->type == PERF_RECORD_MMAP2)
			r = on_mmap(m, record);
	}
	return r < 0 ? r : poked_new(m->dir, &m->data, &m->walk, &m->poked);
}

int mapped_new(const char *path, struct mapped **ret_mapped)
{
	_cleanup_(mapped_freep) struct mapped *m = calloc(1, sizeof(*m));
	char name[8192];
	struct stat st;
	int r;

	if (!m)
		return -ENOMEM;
	(void)snprintf(name, sizeof(name), "%s", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		m->dir = strdup(path);
		if (!m->dir)
			return -ENOMEM;
		(void)snprintf(name, sizeof(name), "%s/objects.map", path);
		(void)!mapfile_read(&m->objects_map, AT_FDCWD, name);
		(void)snprintf(name, sizeof(name), "%s/data", path);
		r = jitted_new(path, &m->jitted);
		if (r < 0)
			return r;
	}
	r = mapfile_read(&m->data, AT_FDCWD, name);
	if (r == 0)
		r = read_all(m);
	if (r < 0)
		return r;
	*ret_mapped = TAKE(m);
	return 0;
}

int mapped_new_raw(const struct ptd_raw_code *code, size_t n_code, struct mapped **ret_mapped)
{
	_cleanup_(mapped_freep) struct mapped *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	r = begin_memory(m, PTD_ID_UNKNOWN, 0, SIZE_MAX);
	for (size_t i = 0; i < n_code && r == 0; i++) {
		struct range range = { .start = code[i].address,
				       .size = code[i].size,
				       .offset = code[i].offset };

		r = find_file(m, code[i].path, &(struct buildid){}, &range.file);
		if (r == 0)
			r = vec_push(&m->memories.items[0].ranges, range);
	}
	if (r < 0)
		return r;
	*ret_mapped = TAKE(m);
	return 0;
}

struct mapped *mapped_free(struct mapped *mapped)
{
	if (!mapped)
		return NULL;
	for (size_t i = 0; i < mapped->files.n; i++) {
		mapfile_deinit(&mapped->files.items[i].map);
		free(mapped->files.items[i].path);
	}
	for (size_t i = 0; i < mapped->memories.n; i++)
		vec_deinit(&mapped->memories.items[i].ranges);
	vec_deinit(&mapped->files);
	vec_deinit(&mapped->memories);
	recordwalk_deinit(&mapped->walk);
	(void)jitted_free(mapped->jitted);
	(void)poked_free(mapped->poked);
	mapfile_deinit(&mapped->data);
	mapfile_deinit(&mapped->objects_map);
	free(mapped->dir);
	free(mapped);
	return NULL;
}

/* Looking up. */

static bool range_holds(const struct range *range, uint64_t address)
{
	return address >= range->start && address - range->start < range->size;
}

/* Linux 6.11 and later, arch/x86: what [uprobes] begins with, for uretprobes. */
static const uint8_t trampoline[] = {
	0x50,                                     /* push %rax */
	0x51,                                     /* push %rcx */
	0x41, 0x53,                               /* push %r11 */
	0x48, 0xc7, 0xc0, 0x4f, 0x01, 0x00, 0x00, /* mov $__NR_uretprobe, %rax */
	0x0f, 0x05,                               /* syscall */
	0x41, 0x5b,                               /* pop %r11 */
	0x59,                                     /* pop %rcx */
	0xc3,                                     /* ret */
};

/* Fill in the bytes from @address on that @range has and its file holds. */
static int bytes_at(const struct mapped *m, const struct range *range, uint64_t address,
		    struct mapped_bytes *ret)
{
	const struct file *file = &m->files.items[range->file];
	const bool is_uprobes = strcmp(file->path, "[uprobes]") == 0;
	const struct mapfile map =
	    is_uprobes ? (struct mapfile){ trampoline, sizeof(trampoline) } : file->map;
	const uint64_t offset = is_uprobes ? 0 : range->offset;
	const uint64_t at = offset + (address - range->start);
	uint64_t size = range->size - (address - range->start);

	if (!map.bytes || at < offset || at >= map.size)
		return -ENOENT;
	if (size > map.size - at)
		size = map.size - at;
	ret->bytes = map.bytes + at;
	ret->size = (size_t)size;
	return 0;
}

/*
 * The newest of the ranges up to @time that holds @address counts, but only as far as none that is
 * newer begins.
 */
static const struct range *newest_range(const struct memory *memory, uint64_t time,
					uint64_t address, uint64_t *from, uint64_t *to,
					uint64_t *size)
{
	const struct range *found = NULL;

	for (size_t i = memory->ranges.n; i > 0; i--) {
		const struct range *r = &memory->ranges.items[i - 1];

		if (r->time > time) {
			if (r->time < *to)
				*to = r->time;
			continue;
		}
		if (range_holds(r, address)) {
			found = r;
			if (r->time > *from)
				*from = r->time;
			break;
		}
		if (r->start > address && r->start - address < *size) {
			*size = r->start - address;
			if (r->time > *from)
				*from = r->time;
		}
	}
	return found;
}

int mapped_find(const struct mapped *mapped, uint32_t pid, uint64_t time, uint64_t address,
		struct mapped_bytes *ret_bytes)
{
	struct mapped_bytes b = { .to = UINT64_MAX };
	size_t memory = memory_of(mapped, pid, time);
	uint64_t size = UINT64_MAX;
	int r;

	if (memory == SIZE_MAX)
		return -ENOENT;
	b.from = mapped->memories.items[memory].start;
	for (size_t i = memory + 1; i < mapped->memories.n; i++)
		if (mapped->memories.items[i].pid == pid && mapped->memories.items[i].start < b.to)
			b.to = mapped->memories.items[i].start;

	for (size_t n = 0; memory != SIZE_MAX && n < PARENTS_MAX; n++) {
		const struct memory *at = &mapped->memories.items[memory];
		const struct range *range = newest_range(at, time, address, &b.from, &b.to, &size);

		if (range) {
			r = bytes_at(mapped, range, address, &b);
			if (r < 0)
				return r;
			if (b.size > size)
				b.size = (size_t)size;
			*ret_bytes = b;
			return 0;
		}
		if (at->start < time)
			time = at->start;
		memory = at->parent;
	}
	return -ENOENT;
}

bool mapped_jitted(const struct mapped *mapped, uint32_t pid, uint64_t time, uint64_t address,
		   const uint8_t *bytes, size_t size, uint64_t *from, uint64_t *to)
{
	size_t memory = memory_of(mapped, pid, time);

	if (!mapped->jitted)
		return false;
	for (size_t n = 0; memory != SIZE_MAX && n < PARENTS_MAX; n++) {
		const struct memory *at = &mapped->memories.items[memory];

		if (jitted_have(mapped->jitted, at->pid, time, address, bytes, size, from, to))
			return true;
		if (at->start < time)
			time = at->start;
		memory = at->parent;
	}
	return false;
}

bool mapped_kernel(const struct mapped *mapped, uint64_t time, uint64_t address,
		   const uint8_t *bytes, size_t size, uint64_t *from, uint64_t *to)
{
	return mapped->poked && address >= POKED_KERNEL &&
	       poked_have(mapped->poked, time, address, bytes, size, from, to);
}
