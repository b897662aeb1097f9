/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/kernelcode.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/proc/kernelmap.h"
#include "daemon/proc/textfile.h"
#include "record/record.h"
#include "util/cancel.h"
#include "util/vec.h"

#define PAGE    KERNELMAP_PAGE
#define IO_SIZE ((size_t)64 << 10)

#define SEGMENTS_MAX 4096u /* of the file; decoder/kernel/kcore.h takes no more */

#define WHY_KCORE                                                                                  \
	"/proc/kcore cannot be read: CAP_SYS_RAWIO is missing (under systemd, PrivateDevices=yes " \
	"takes it away), or the kernel is locked down"
#define WHY_ODD "/proc/kcore is no ELF file of the kernel's memory"

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

/* @error: of openat(2) or pread(2) */
static int cannot_read(int error, const char **reterr_why)
{
	if (error != EPERM && error != EACCES && error != ENOENT)
		return -error;
	*reterr_why = WHY_KCORE;
	return -EPERM;
}

static int is_odd(const char **reterr_why)
{
	*reterr_why = WHY_ODD;
	return -ENODATA;
}

static int open_kcore(int proc_fd, struct kcore *kcore, const char **reterr_why)
{
	Elf64_Phdr h;
	Elf64_Ehdr e;

	kcore->fd = openat(proc_fd, "kcore", O_RDONLY | O_CLOEXEC);
	if (kcore->fd < 0)
		return cannot_read(errno, reterr_why);
	errno = EPERM; /* an empty one says nothing */
	if (pread(kcore->fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e))
		return cannot_read(errno, reterr_why);
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_phentsize != sizeof(h))
		return is_odd(reterr_why);
	for (unsigned i = 0; i < e.e_phnum; i++) {
		if (pread(kcore->fd, &h, sizeof(h), (off_t)(e.e_phoff + i * sizeof(h))) !=
		    (ssize_t)sizeof(h))
			return is_odd(reterr_why);
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
	int fd;
	const atomic_bool *cancel; /* borrowed */
	VEC(Elf64_Phdr) segments;  /* one for each run of pages that could be read */
	uint64_t end;              /* of what was written */
	uint64_t bytes;            /* that were read */
	uint64_t bytes_unreadable;
	size_t n_left_out;     /* runs that there was no room for */
	uint64_t left_out_end; /* of the last of these */
};

static void kcore_output_deinit(struct kcore_output *o)
{
	o->fd = fd_close(o->fd);
	vec_deinit(&o->segments);
}

/* Append @size bytes, at most a page, of memory at @address: to the last segment if they continue
 * it. Return: 0 or negative errno. */
static int write_page(struct kcore_output *o, uint64_t address, const uint8_t *bytes, size_t size)
{
	Elf64_Phdr *h = o->segments.n ? &o->segments.items[o->segments.n - 1] : NULL;
	int r;

	if (!h || h->p_vaddr + h->p_memsz != address) {
		if (o->segments.n == SEGMENTS_MAX) {
			o->n_left_out += address != o->left_out_end;
			o->left_out_end = address + size;
			return 0;
		}
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

		if (cancel_asked(o->cancel))
			return -ECANCELED;
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

static int write_kcore(struct kcore_output *o, const struct kernelmap *map,
		       const struct kcore *kcore, int dir_fd, const char **reterr_why)
{
	int r = 0;

	o->fd = openat(dir_fd, "kcore", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (o->fd < 0)
		return -errno;
	o->end = sizeof(Elf64_Ehdr) + SEGMENTS_MAX * sizeof(Elf64_Phdr);
	for (size_t i = 0; r == 0 && i < map->pieces.n; i++)
		r = copy_piece(o, kcore, &map->pieces.items[i]);
	if (r == 0 && o->bytes == 0) {
		*reterr_why = WHY_KCORE;
		return -EPERM;
	}
	return r < 0 ? r : write_headers(o);
}

/* --- records --------------------------------------------------------------------------------- */

/* As perf makes them: MMAP, of process -1, before everything. */
static int put_mmap(uint64_t start, uint64_t size, uint64_t pgoff, const char *name,
		    record_put_fn put, void *userdata)
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

	return put(userdata, record, record_write_mmap(&mmap, &trailer, record, sizeof(record)));
}

static int put_records(const struct kernelmap *map, record_put_fn put, void *userdata)
{
	int r;

	/* The symbol behind the name, and its address as offset, tell where it was moved to. */
	r = put_mmap(map->text, map->etext - map->text, map->text, "[kernel.kallsyms]_text", put,
		     userdata);
	for (size_t i = 0; r == 0 && i < map->modules.n; i++) {
		const struct kernelmap_module *m = &map->modules.items[i];

		r = put_mmap(m->start, m->size, 0, m->name, put, userdata);
	}
	return r;
}

/* --- all of it ------------------------------------------------------------------------------- */

int kernelcode_check(int proc_fd, const char **reterr_why)
{
	_cleanup_(kcore_deinit) struct kcore kcore = { .fd = -1 };
	_cleanup_(kernelmap_deinit) struct kernelmap map = {};
	uint8_t byte;
	int r;

	r = kernelmap_init(&map, proc_fd, NULL, NULL, reterr_why);
	if (r == 0)
		r = open_kcore(proc_fd, &kcore, reterr_why);
	if (r == 0 && read_memory(&kcore, map.text, &byte, 1) == 0) {
		*reterr_why = WHY_KCORE;
		return -EPERM;
	}
	return r;
}

static int write_texts(int proc_fd, int dir_fd, struct kernelmap *map, uint64_t *bytes,
		       const char **reterr_why)
{
	_cleanup_(textfile_closep) FILE *names = NULL, *modules = NULL;
	int r;

	r = textfile_create(dir_fd, "kallsyms", &names);
	if (r == 0)
		r = textfile_create(dir_fd, "modules", &modules);
	if (r == 0)
		r = kernelmap_init(map, proc_fd, names, modules, reterr_why);
	if (r == 0)
		r = textfile_finish(&names, bytes);
	return r < 0 ? r : textfile_finish(&modules, bytes);
}

int kernelcode_write(const struct kernelcode_request *request, struct kernelcode *ret_code,
		     const char **reterr_why)
{
	_cleanup_(kcore_deinit) struct kcore kcore = { .fd = -1 };
	_cleanup_(kernelmap_deinit) struct kernelmap map = {};
	_cleanup_(kcore_output_deinit) struct kcore_output output = { .fd = -1,
								      .cancel = request->cancel };
	const int proc_fd = request->proc_fd, dir_fd = request->dir_fd;
	uint64_t bytes = 0;
	int r;

	*reterr_why = NULL;
	r = write_texts(proc_fd, dir_fd, &map, &bytes, reterr_why);
	if (r == 0)
		r = open_kcore(proc_fd, &kcore, reterr_why);
	if (r == 0)
		r = write_kcore(&output, &map, &kcore, dir_fd, reterr_why);
	if (r == 0)
		r = put_records(&map, request->put, request->userdata);
	if (r == 0)
		*ret_code = (struct kernelcode){
			.bytes = bytes + output.bytes,
			.bytes_unreadable = output.bytes_unreadable,
			.n_left_out = map.n_left_out + output.n_left_out,
		};
	return r;
}
