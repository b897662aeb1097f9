/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/function.h"
#include "util/mapname.h"
#include "util/mapsline.h"
#include "util/mutex.h"
#include "util/perf/codec.h"
#include "util/regular.h"
#include "util/suffix.h"

#define FILES_MAX 4096
#define PAGE      UINT64_C(4096)

/* One line of /proc/self/maps, in the target's addresses. */
struct vma {
	uint64_t start;
	uint64_t end;
	uint64_t pgoff;
	uint32_t maj;
	uint32_t min;
	uint64_t ino;
	bool shared;
	const char *path; /* points into the line; "" if there is none */
};

struct scan {
	FILE *file;
	char *line;
	size_t line_size;
	uintptr_t guest_base;
};

static void scan_end(struct scan *scan)
{
	if (scan->file)
		(void)fclose(scan->file);
	free(scan->line);
}

static void scan_begin(struct scan *scan, uintptr_t guest_base)
{
	*scan = (struct scan){ .file = fopen("/proc/self/maps", "re"), .guest_base = guest_base };
}

static bool scan_next(struct scan *scan, struct vma *ret_vma)
{
	struct mapsline l;
	ssize_t n;

	n = scan->file ? getline(&scan->line, &scan->line_size, scan->file) : -1;
	if (n <= 0)
		return false;
	if (scan->line[n - 1] == '\n')
		scan->line[n - 1] = '\0';
	if (mapsline_parse(scan->line, &l) < 0)
		return false;
	*ret_vma = (struct vma){
		.start = l.start - scan->guest_base,
		.end = l.end - scan->guest_base,
		.pgoff = l.offset,
		.maj = l.maj,
		.min = l.min,
		.ino = l.ino,
		.shared = l.flags & MAP_SHARED,
		.path = l.name,
	};
	return true;
}

void maps_init(struct maps *maps, const struct attach *attach, const struct target *target)
{
	*maps = (struct maps){ .attach = attach, .target = target };
	(void)pthread_mutex_init(&maps->lock, NULL);
	(void)elf_version(EV_CURRENT);
}

void maps_fork_prepare(struct maps *maps)
{
	(void)pthread_mutex_lock(&maps->lock);
}

void maps_fork_parent(struct maps *maps)
{
	(void)pthread_mutex_unlock(&maps->lock);
}

void maps_fork_child(struct maps *maps)
{
	(void)pthread_mutex_init(&maps->lock, NULL);
}

/* --- what is known ---------------------------------------------------------------------------- */

/* Return: the index of the first range that ends after @ip. */
static size_t first_behind(const struct maps_ranges *ranges, uint64_t ip)
{
	return vec_bisect(&ranges->list, range, range->end <= ip);
}

/* Replace the ranges from index @from to before @to by @n others. Return: 0 or -ENOMEM. */
static int replace_ranges(struct maps_ranges *ranges, size_t from, size_t to,
			  const struct maps_range *news, size_t n)
{
	struct maps_range *items;

	if (n > to - from && vec_reserve(&ranges->list, n) < 0)
		return -ENOMEM;
	items = ranges->list.items;
	if (ranges->list.n > to)
		memmove(items + from + n, items + to, (ranges->list.n - to) * sizeof(*items));
	if (n > 0)
		memcpy(items + from, news, n * sizeof(*items));
	ranges->list.n = ranges->list.n - (to - from) + n;
	return 0;
}

static int forget_range(struct maps_ranges *ranges, uint64_t start, uint64_t end)
{
	const size_t from = first_behind(ranges, start);
	struct maps_range rest[2];
	size_t to = from, n = 0;

	for (; to < ranges->list.n && ranges->list.items[to].start < end; to++) {
		const struct maps_range r = ranges->list.items[to];

		if (r.start < start)
			rest[n++] = (struct maps_range){ r.start, start, r.place };
		if (r.end > end)
			rest[n++] = (struct maps_range){ end, r.end, r.place };
	}
	return to > from ? replace_ranges(ranges, from, to, rest, n) : 0;
}

static int remember_range(struct maps_ranges *ranges, uint64_t start, uint64_t end,
			  enum handover_place place)
{
	const struct maps_range *r;
	size_t from, to;

	if (forget_range(ranges, start, end) < 0)
		return -ENOMEM;
	from = to = first_behind(ranges, start);
	r = ranges->list.items;
	if (from > 0 && r[from - 1].end == start && r[from - 1].place == place)
		start = r[--from].start;
	if (to < ranges->list.n && r[to].start == end && r[to].place == place)
		end = r[to++].end;
	return replace_ranges(ranges, from, to, &(struct maps_range){ start, end, place }, 1);
}

void maps_remove(struct maps *maps, uint64_t start, uint64_t size)
{
	HOLD(&maps->lock);

	/* Without memory a range stays unknown or known. Then a record is written twice, or is
	 * missing until the check at the translation notices that. */
	(void)!forget_range(&maps->known, start, start + size);
}

bool maps_has(struct maps *maps, uint64_t start, uint64_t size)
{
	bool has;
	size_t i;
	HOLD(&maps->lock);

	i = first_behind(&maps->known, start);
	has = i < maps->known.list.n && maps->known.list.items[i].start < start + size;
	return has;
}

static void note_writable(struct maps *maps, uint64_t start, uint64_t end)
{
	if (remember_range(&maps->writable, start, end, HANDOVER_MEMORY) < 0)
		maps->forgot_writable = true;
}

void maps_note_writable(struct maps *maps, uint64_t start, uint64_t size)
{
	HOLD(&maps->lock);

	note_writable(maps, start & ~(PAGE - 1), (start + size + PAGE - 1) & ~(PAGE - 1));
}

enum handover_place maps_place(struct maps *maps, uint64_t start, uint64_t size)
{
	/* For memory that no call made executable, the place is not known. */
	enum handover_place place = HANDOVER_WRITTEN;
	const struct maps_range *r;
	bool writable;
	size_t i;

	(void)pthread_mutex_lock(&maps->lock);
	r = maps->known.list.items;
	i = first_behind(&maps->known, start);
	if (i < maps->known.list.n && r[i].start <= start && start + size <= r[i].end)
		place = r[i].place;
	r = maps->writable.list.items;
	i = first_behind(&maps->writable, start);
	writable =
	    maps->forgot_writable || (i < maps->writable.list.n && r[i].start < start + size);
	(void)pthread_mutex_unlock(&maps->lock);

	if (place == HANDOVER_FILE && writable && target_is_written(maps->target, start, size))
		return HANDOVER_WRITTEN;
	return place;
}

uint32_t maps_watched(struct maps *maps, uint64_t ip)
{
	HOLD(&maps->lock);

	return watch_at(&maps->watch, ip);
}

/* --- records ---------------------------------------------------------------------------------- */

static void read_buildid(struct maps *maps, const char *path, struct buildid *ret_id)
{
	_cleanup_(fd_closep) int fd = -1;
	struct maps_file file = {};
	struct stat st;

	*ret_id = (struct buildid){};
	fd = regular_open(AT_FDCWD, path, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	file.mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	for (size_t i = 0; i < maps->files.n; i++) {
		const struct maps_file *f = &maps->files.items[i];

		if (f->dev == file.dev && f->ino == file.ino && f->mtime_ns == file.mtime_ns) {
			*ret_id = f->buildid;
			return;
		}
	}
	if (buildid_read(fd, &file.buildid) < 0)
		return;
	*ret_id = file.buildid;
	if (maps->files.n < FILES_MAX)
		(void)vec_push(&maps->files, file);
}

/* Names in brackets name QEMU's own memory, not the target's. */
static bool is_file(const struct vma *vma)
{
	return vma->path[0] != '\0' && vma->path[0] != '[';
}

/* A file that is mapped shared, or has no name, may have changed by the time when it is copied. */
static enum handover_place vma_place(const struct vma *vma)
{
	if (!is_file(vma) || mapname_is_memory(vma->path))
		return HANDOVER_MEMORY;
	if (vma->shared || strncmp(vma->path, "/dev/shm/", strlen("/dev/shm/")) == 0 ||
	    suffix_is(vma->path, " (deleted)"))
		return HANDOVER_WRITTEN;
	return HANDOVER_FILE;
}

static void write_record(struct maps *maps, struct poolrecord_who who, const struct vma *vma,
			 uint64_t start, uint64_t end, uint32_t prot)
{
	struct record_mmap2 map = {
		.addr = start,
		.len = end - start,
		.prot = prot,
		.flags = vma->shared ? MAP_SHARED : MAP_PRIVATE,
		.name = "//anon",
	};

	if (is_file(vma)) {
		map.pgoff = vma->pgoff + (start - vma->start);
		map.maj = vma->maj;
		map.min = vma->min;
		map.ino = vma->ino;
		map.name = vma->path;
		read_buildid(maps, vma->path, &map.build_id);
	} else {
		map.flags |= MAP_ANONYMOUS;
	}
	poolrecord_mmap(maps->attach, who, &map);
	if (maps->watch.n_conditions > 0)
		watch_map(&maps->watch,
			  &(struct watch_mapping){ .path = is_file(vma) ? vma->path : NULL,
						   .start = start,
						   .end = end,
						   .offset = map.pgoff });
}

static size_t add_locked(struct maps *maps, struct poolrecord_who who, uint64_t start, uint64_t end,
			 uint32_t prot)
{
	_cleanup_(scan_end) struct scan scan;
	struct vma vma;
	size_t n = 0;

	scan_begin(&scan, *maps->target->base);
	while (scan_next(&scan, &vma)) {
		const uint64_t from = vma.start > start ? vma.start : start;
		const uint64_t to = vma.end < end ? vma.end : end;

		if (from >= to)
			continue;
		write_record(maps, who, &vma, from, to, prot);
		(void)!remember_range(&maps->known, from, to, vma_place(&vma));
		if (prot & PROT_WRITE)
			note_writable(maps, from, to);
		n++;
	}
	return n;
}

size_t maps_add(struct maps *maps, struct poolrecord_who who, uint64_t start, uint64_t size,
		uint32_t prot)
{
	const uint64_t from = start & ~(PAGE - 1);
	const uint64_t to = (start + size + PAGE - 1) & ~(PAGE - 1);
	size_t n;
	HOLD(&maps->lock);

	n = add_locked(maps, who, from, to, prot);
	atomic_fetch_add_explicit(&maps->n_adds, 1, memory_order_release);
	return n;
}

/* --- images ----------------------------------------------------------------------------------- */

struct segment {
	uint64_t start;
	uint64_t end;
	uint32_t prot;
};

/* Find the executable segments of the ELF file whose byte at @offset is at @address. QEMU's
 * mappings may be merged, so the headers of the file are used. */
static size_t read_segments(const char *path, uint64_t offset, uint64_t address,
			    struct segment *ret_segments, size_t n_max)
{
	_cleanup_(fd_closep) int fd = regular_open(AT_FDCWD, path, 0);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	size_t n_headers = 0, n = 0;
	uint64_t bias = 0;
	GElf_Phdr p;

	if (!elf || elf_getphdrnum(elf, &n_headers) < 0)
		n_headers = 0;
	for (size_t i = 0; i < n_headers; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && offset >= p.p_offset &&
		    offset - p.p_offset < p.p_filesz)
			bias = address - (p.p_vaddr + (offset - p.p_offset));
	for (size_t i = 0; i < n_headers && n < n_max; i++) {
		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		ret_segments[n++] = (struct segment){
			.start = bias + p.p_vaddr,
			.end = bias + p.p_vaddr + p.p_filesz,
			.prot = PROT_EXEC | (p.p_flags & PF_R ? PROT_READ : 0) |
				(p.p_flags & PF_W ? PROT_WRITE : 0),
		};
	}
	if (elf)
		(void)elf_end(elf);
	return n;
}

void maps_add_image(struct maps *maps, struct poolrecord_who who, uint64_t address)
{
	_cleanup_(scan_end) struct scan scan;
	struct segment segments[64];
	struct vma vma;
	size_t n = 0;

	scan_begin(&scan, *maps->target->base);
	while (scan_next(&scan, &vma)) {
		if (address < vma.start || address >= vma.end)
			continue;
		if (is_file(&vma))
			n = read_segments(vma.path, vma.pgoff + (address - vma.start), address,
					  segments, ARRAY_LEN(segments));
		break;
	}
	for (size_t i = 0; i < n; i++)
		(void)maps_add(maps, who, segments[i].start, segments[i].end - segments[i].start,
			       segments[i].prot);
}

/* --- watch ------------------------------------------------------------------------------------ */

uint32_t watch_at(const struct watch *watch, uint64_t address)
{
	for (size_t i = 0; i < watch->places.n; i++)
		if (watch->places.items[i].address == address)
			return watch->places.items[i].condition + 1;
	return 0;
}

static void forget(struct watch *watch, uint64_t start, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < watch->places.n; i++) {
		const struct watch_place place = watch->places.items[i];

		if (place.address < start || place.address >= end)
			watch->places.items[n++] = place;
	}
	watch->places.n = n;
}

/* An object is named by the path of the file, or by the path's last part. */
static bool is_wanted(const struct condition *condition, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (condition->kind != CONDITION_ENTER)
		return false;
	return !condition->object || strcmp(condition->object, path) == 0 ||
	       (slash && strcmp(condition->object, slash + 1) == 0);
}

static void add_place(struct watch *watch, const struct watch_mapping *mapping, uint64_t offset,
		      uint32_t condition)
{
	if (offset < mapping->offset || offset - mapping->offset >= mapping->end - mapping->start ||
	    watch->places.n == WATCH_PLACES_MAX)
		return;
	/* Without memory the function is not watched. */
	(void)!vec_push(&watch->places, { .address = mapping->start + (offset - mapping->offset),
					  .condition = condition });
}

void watch_map(struct watch *watch, const struct watch_mapping *mapping)
{
	struct function functions[WATCH_PLACES_MAX / CONDITIONS_MAX];
	const char *names[CONDITIONS_MAX];
	uint32_t indexes[CONDITIONS_MAX];
	_cleanup_(fd_closep) int fd = -1;
	size_t n = 0;
	int n_found;

	forget(watch, mapping->start, mapping->end);
	for (uint32_t i = 0; mapping->path && i < watch->n_conditions; i++) {
		if (!is_wanted(&watch->conditions[i], mapping->path))
			continue;
		names[n] = watch->conditions[i].function;
		indexes[n++] = i;
	}
	if (n == 0)
		return;
	fd = regular_open(AT_FDCWD, mapping->path, 0);
	n_found = fd < 0 ? 0 : function_find(fd, names, n, functions, ARRAY_LEN(functions));
	for (int i = 0; i < n_found; i++)
		add_place(watch, mapping, functions[i].offset, indexes[functions[i].name]);
}
