/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/kernelcode.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/proc/kernelmap.h"
#include "util/perf/record.h"
#include "util/textfile.h"
#include "util/vec.h"

#define PAGE    KERNELMAP_PAGE
#define IO_SIZE ((size_t)64 << 10)

#define SEGMENTS_MAX 4096u /* of the file; decoder/kernel/kcore.h takes no more */

struct kcore {
	int fd;
	VEC(Elf64_Phdr) segments;
};

static void kcore_deinit(struct kcore *kcore)
{
	kcore->fd = fd_close(kcore->fd);
	vec_deinit(&kcore->segments);
}

/* --- bytes ----------------------------------------------------------------------------------- */

/* @error: of openat(2) or pread(2). Return: 0, or negative errno. */
static int cannot_read(int error, enum kernellack *ret_lack)
{
	if (error != EPERM && error != EACCES && error != ENOENT)
		return -error;
	*ret_lack = KERNELLACK_NO_CODE;
	return 0;
}

static int is_odd(enum kernellack *ret_lack)
{
	*ret_lack = KERNELLACK_ODD_CODE;
	return 0;
}

/* Return: 0, also if @ret_lack is set; or negative errno. */
static int open_kcore(int proc_fd, struct kcore *kcore, enum kernellack *ret_lack)
{
	Elf64_Phdr h;
	Elf64_Ehdr e;

	kcore->fd = openat(proc_fd, "kcore", O_RDONLY | O_CLOEXEC);
	if (kcore->fd < 0)
		return cannot_read(errno, ret_lack);
	errno = EPERM; /* an empty one says nothing */
	if (pread(kcore->fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e))
		return cannot_read(errno, ret_lack);
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_phentsize != sizeof(h))
		return is_odd(ret_lack);
	for (unsigned i = 0; i < e.e_phnum; i++) {
		if (pread(kcore->fd, &h, sizeof(h), (off_t)(e.e_phoff + i * sizeof(h))) !=
		    (ssize_t)sizeof(h))
			return is_odd(ret_lack);
		if (h.p_type == PT_LOAD && vec_push(&kcore->segments, h) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Read up to @size bytes of memory. Return: how many there are; 0 if none. */
static size_t read_memory(const struct kcore *kcore, uint64_t address, uint8_t *to, size_t size)
{
	for (size_t i = 0; i < kcore->segments.n; i++) {
		const Elf64_Phdr *h = &kcore->segments.items[i];
		ssize_t n;

		if (address < h->p_vaddr || address - h->p_vaddr >= h->p_memsz)
			continue;
		if (size > h->p_memsz - (address - h->p_vaddr))
			size = h->p_memsz - (address - h->p_vaddr);
		n = pread(kcore->fd, to, size, (off_t)(h->p_offset + (address - h->p_vaddr)));
		return n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* --- the file -------------------------------------------------------------------------------- */

/* The kcore that is being written. Its segments are found as the memory is read, but their headers
 * come first: there is room for as many as a reader takes. */
struct kcore_output {
	int fd;                   /* borrowed */
	uint64_t left;            /* bytes of memory that may still be written */
	VEC(Elf64_Phdr) segments; /* one for each run of pages that could be read */
	uint64_t end;             /* of what was written */
	uint64_t bytes;           /* that were read */
	uint64_t bytes_unreadable;
	size_t n_left_out;     /* runs that there was no room for */
	uint64_t left_out_end; /* of the last of these */
};

static void kcore_output_deinit(struct kcore_output *o)
{
	vec_deinit(&o->segments);
}

static void leave_out(struct kcore_output *o, uint64_t address, size_t size)
{
	o->n_left_out += address != o->left_out_end;
	o->left_out_end = address + size;
}

/* Append @size bytes, at most a page, of memory at @address: to the last segment if they continue
 * it. Return: 0 or negative errno. */
static int write_page(struct kcore_output *o, uint64_t address, const uint8_t *bytes, size_t size)
{
	Elf64_Phdr *h = o->segments.n ? &o->segments.items[o->segments.n - 1] : NULL;
	const bool continues = h && h->p_vaddr + h->p_memsz == address;
	int r;

	if (size > o->left || (!continues && o->segments.n == SEGMENTS_MAX)) {
		leave_out(o, address, size);
		return 0;
	}
	if (!continues) {
		o->end = ((o->end + PAGE - 1) & ~(PAGE - 1)) + (address & (PAGE - 1));
		r = vec_push(&o->segments, { .p_type = PT_LOAD,
					     .p_flags = PF_R | PF_W | PF_X,
					     .p_offset = o->end,
					     .p_vaddr = address,
					     .p_align = PAGE });
		if (r < 0)
			return r;
		h = &o->segments.items[o->segments.n - 1];
	}
	errno = ENOSPC;
	if (pwrite(o->fd, bytes, size, (off_t)o->end) != (ssize_t)size)
		return -errno;
	h->p_filesz += size;
	h->p_memsz += size;
	o->end += size;
	o->left -= size;
	o->bytes += size;
	return 0;
}

/* Write what was read. The kernel shows memory that it cannot read as zeros, and no page of code
 * is nothing but zeros. */
static int write_pages(struct kcore_output *o, uint64_t address, const uint8_t *bytes, size_t size)
{
	static const uint8_t zeros[PAGE];
	int r = 0;

	for (size_t at = 0, n; r == 0 && at < size; at += n) {
		n = size - at < PAGE ? size - at : PAGE;
		if (memcmp(bytes + at, zeros, n) == 0)
			o->bytes_unreadable += n;
		else
			r = write_page(o, address + at, bytes + at, n);
	}
	return r;
}

/* Copy a piece of memory. What cannot be read is left out. */
static int copy_piece(struct kcore_output *o, const struct kcore *kcore,
		      const struct kernelmap_piece *piece)
{
	_cleanup_(freep) uint8_t *block = malloc(IO_SIZE);
	uint64_t at = piece->start;
	int r = 0;

	if (!block)
		return -ENOMEM;
	while (r == 0 && at < piece->end) {
		const size_t size = piece->end - at < IO_SIZE ? (size_t)(piece->end - at) : IO_SIZE;
		const size_t n = read_memory(kcore, at, block, size);
		const size_t hole = n > 0 ? 0 : PAGE - (at & (PAGE - 1));

		r = write_pages(o, at, block, n);
		o->bytes_unreadable += hole;
		at += n + hole;
	}
	return r;
}

static int write_headers(const struct kcore_output *o)
{
	const Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(e),
		.e_ehsize = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)o->segments.n,
	};
	const size_t size = o->segments.n * sizeof(Elf64_Phdr);

	errno = ENOSPC;
	if (pwrite(o->fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e) ||
	    pwrite(o->fd, o->segments.items, size, sizeof(e)) != (ssize_t)size)
		return -errno;
	return 0;
}

/* Return: 0, also if @ret_lack is set; or negative errno. */
static int write_kcore(struct kcore_output *o, const struct kernelmap *map,
		       const struct kcore *kcore, enum kernellack *ret_lack)
{
	int r = 0;

	o->end = sizeof(Elf64_Ehdr) + SEGMENTS_MAX * sizeof(Elf64_Phdr);
	for (size_t i = 0; r == 0 && i < map->pieces.n; i++)
		r = copy_piece(o, kcore, &map->pieces.items[i]);
	if (r < 0)
		return r;
	if (o->bytes > 0)
		return write_headers(o);
	*ret_lack = KERNELLACK_NO_CODE;
	return 0;
}

/* --- records --------------------------------------------------------------------------------- */

/* As perf makes them: MMAP, of process -1, before everything. */
static int write_mmap(uint64_t start, uint64_t size, uint64_t pgoff, const char *name, FILE *to)
{
	const struct record_mmap2 mmap = {
		.misc = PERF_RECORD_MISC_KERNEL,
		.pid = UINT32_MAX,
		.addr = start,
		.len = size,
		.pgoff = pgoff,
		.name = name,
	};
	const struct trailer trailer = record_trailer(0, 0, 0);
	uint8_t record[RECORD_OWN_MAX];
	const size_t n = record_write_mmap(&mmap, &trailer, record, sizeof(record));

	return fwrite(record, 1, n, to) == n ? 0 : -EIO;
}

static int write_records(const struct kernelmap *map, FILE *to)
{
	int r;

	/* The symbol behind the name, and its address as offset, say where it was moved to. */
	r = write_mmap(map->text, map->etext - map->text, map->text, "[kernel.kallsyms]_text", to);
	for (size_t i = 0; r == 0 && i < map->modules.n; i++) {
		const struct kernelmap_module *m = &map->modules.items[i];

		r = write_mmap(m->start, m->size, 0, m->name, to);
	}
	return r;
}

/* --- all of it ------------------------------------------------------------------------------- */

int kernelcode_check(int proc_fd, enum kernellack *ret_lack)
{
	_cleanup_(kcore_deinit) struct kcore kcore = { .fd = -1 };
	_cleanup_(kernelmap_deinit) struct kernelmap map = {};
	enum kernellack lack = KERNELLACK_NONE;
	uint8_t byte;
	int r;

	r = kernelmap_init(&map, proc_fd, NULL, &lack);
	if (r == 0 && !lack)
		r = open_kcore(proc_fd, &kcore, &lack);
	if (r < 0)
		return r;
	if (!lack && read_memory(&kcore, map.text, &byte, 1) == 0)
		lack = KERNELLACK_NO_CODE;
	*ret_lack = lack;
	return 0;
}

int kernelcode_copy_names(int proc_fd, int names_fd, int modules_fd, uint64_t size_max,
			  struct kernelmap *ret_map, struct kernelcode *ret_code,
			  enum kernellack *ret_lack)
{
	_cleanup_(textfile_closep) FILE *names = NULL, *modules = NULL;
	_cleanup_(kernelmap_deinit) struct kernelmap map = {};
	struct kernelmap_texts texts = { .size_max = size_max };
	uint64_t bytes = 0;
	int r;

	r = textfile_write(names_fd, &names);
	if (r == 0)
		r = textfile_write(modules_fd, &modules);
	texts.names = names;
	texts.modules = modules;
	if (r == 0)
		r = kernelmap_init(&map, proc_fd, &texts, ret_lack);
	if (r == 0)
		r = textfile_finish(&names, &bytes);
	if (r == 0)
		r = textfile_finish(&modules, &bytes);
	if (r < 0)
		return r;
	*ret_code = (struct kernelcode){ .bytes = bytes, .n_left_out = map.n_left_out };
	*ret_map = map;
	map = (struct kernelmap){};
	return 0;
}

int kernelcode_copy(int proc_fd, const struct kernelmap *map, int code_fd, int records_fd,
		    uint64_t size_max, struct kernelcode *ret_code, enum kernellack *ret_lack)
{
	_cleanup_(kcore_output_deinit) struct kcore_output output = { .fd = code_fd,
								      .left = size_max };
	_cleanup_(kcore_deinit) struct kcore kcore = { .fd = -1 };
	_cleanup_(textfile_closep) FILE *records = NULL;
	enum kernellack lack = KERNELLACK_NONE;
	uint64_t bytes = 0;
	int r;

	r = open_kcore(proc_fd, &kcore, &lack);
	if (r == 0 && !lack)
		r = write_kcore(&output, map, &kcore, &lack);
	if (r == 0 && !lack)
		r = textfile_write(records_fd, &records);
	if (r == 0 && !lack)
		r = write_records(map, records);
	if (r == 0 && !lack)
		r = textfile_finish(&records, &bytes);
	if (r < 0)
		return r;
	*ret_lack = lack;
	if (!lack)
		*ret_code = (struct kernelcode){ .bytes = output.bytes,
						 .bytes_unreadable = output.bytes_unreadable,
						 .n_left_out = output.n_left_out };
	return 0;
}
