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
#include "util/vec.h"

#define PAGE    KERNELMAP_PAGE
#define IO_SIZE ((size_t)64 << 10)

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

/* Holes stay holes. Return: 0 or negative errno. */
static int write_pages(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
	static const uint8_t zeros[PAGE];

	for (size_t at = 0; at < size; at += PAGE) {
		const size_t n = size - at < PAGE ? size - at : PAGE;

		errno = ENOSPC;
		if (memcmp(bytes + at, zeros, n) != 0 &&
		    pwrite(fd, bytes + at, n, (off_t)(offset + at)) != (ssize_t)n)
			return -errno;
	}
	return 0;
}

/* Copy a piece of memory to @offset. What cannot be read is left out. */
static int copy_piece(const struct kcore *kcore, const struct kernelmap_piece *piece, int fd,
		      uint64_t offset, uint64_t *n_read)
{
	_cleanup_(freep) uint8_t *block = malloc(IO_SIZE);
	uint64_t at = piece->start;
	int r = 0;

	if (!block)
		return -ENOMEM;
	while (r == 0 && at < piece->end) {
		const size_t size = piece->end - at < IO_SIZE ? (size_t)(piece->end - at) : IO_SIZE;
		const size_t n = read_memory(kcore, at, block, size);

		r = write_pages(fd, block, n, offset + (at - piece->start));
		*n_read += n;
		at += n > 0 ? n : PAGE;
	}
	return r;
}

static int write_headers(const struct kernelmap *map, int fd, uint64_t *ret_data)
{
	const size_t n = map->pieces.n;
	const Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(e),
		.e_ehsize = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)n,
	};
	uint64_t offset = (sizeof(e) + n * sizeof(Elf64_Phdr) + PAGE - 1) & ~(PAGE - 1);

	*ret_data = offset;
	errno = ENOSPC;
	if (pwrite(fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e))
		return -errno;
	for (size_t i = 0; i < n; i++) {
		const struct kernelmap_piece *p = &map->pieces.items[i];
		const Elf64_Phdr h = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W | PF_X,
			.p_offset = offset,
			.p_vaddr = p->start,
			.p_filesz = p->end - p->start,
			.p_memsz = p->end - p->start,
			.p_align = PAGE,
		};

		if (pwrite(fd, &h, sizeof(h), (off_t)(sizeof(e) + i * sizeof(h))) !=
		    (ssize_t)sizeof(h))
			return -errno;
		offset += h.p_filesz;
	}
	return ftruncate(fd, (off_t)offset) < 0 ? -errno : 0;
}

static int write_kcore(const struct kernelmap *map, const struct kcore *kcore, int dir_fd,
		       uint64_t *bytes, const char **reterr_why)
{
	_cleanup_(fd_closep) int fd = -1;
	uint64_t offset, n_read = 0;
	int r;

	fd = openat(dir_fd, "kcore", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	r = write_headers(map, fd, &offset);
	for (size_t i = 0; r == 0 && i < map->pieces.n; i++) {
		const struct kernelmap_piece *p = &map->pieces.items[i];

		r = copy_piece(kcore, p, fd, offset, &n_read);
		offset += p->end - p->start;
	}
	if (r == 0 && n_read == 0) {
		*reterr_why = WHY_KCORE;
		return -EPERM;
	}
	*bytes += n_read;
	return r;
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

int kernelcode_write(int proc_fd, int dir_fd, record_put_fn put, void *userdata,
		     struct kernelcode *ret_code, const char **reterr_why)
{
	_cleanup_(kcore_deinit) struct kcore kcore = { .fd = -1 };
	_cleanup_(kernelmap_deinit) struct kernelmap map = {};
	uint64_t bytes = 0;
	int r;

	*reterr_why = NULL;
	r = write_texts(proc_fd, dir_fd, &map, &bytes, reterr_why);
	if (r == 0)
		r = open_kcore(proc_fd, &kcore, reterr_why);
	if (r == 0)
		r = write_kcore(&map, &kcore, dir_fd, &bytes, reterr_why);
	if (r == 0)
		r = put_records(&map, put, userdata);
	if (r == 0)
		*ret_code = (struct kernelcode){ .bytes = bytes, .n_left_out = map.n_left_out };
	return r;
}
