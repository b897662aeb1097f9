/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Kernel code, from a folder that looks like /proc, and from /proc itself where that is permitted:
 * what is written is read back by the decoder.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/helper/collector/kernelcode.h"
#include "daemon/proc/kernelmap.h"
#include "daemon/snapshot/kernelfiles.h"
#include "decoder/kernel/kcore.h"
#include "decoder/symbol/resolver.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"
#include "util/perf/record.h"

#define KERNEL UINT64_C(0xffffffff81000000)
#define MODULE UINT64_C(0xffffffffc0100000)
#define BPF    UINT64_C(0xffffffffc0300000)
#define PAGE   4096

static const char kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000010 t entry\n"
			       "ffffffff81001800 T _etext\n"
			       "ffffffff81002000 D _sdata\n"
			       "ffffffffc0100020 t fn_of_one\t[one]\n"
			       "ffffffffc0102000 T fn_of_two\t[two]\n"
			       "ffffffffc0102010 d data_of_two\t[two]\n"
			       "ffffffffc0300040 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

/* The first one's size reaches into the second, as kernels since 6.4 may say. */
static const char modules[] = "two 8192 0 - Live 0xffffffffc0102000\n"
			      "one 65536 1 two, Live 0xffffffffc0100000 (OE)\n"
			      "odd 1 - - Loading 0x0000000000000000\n";

struct fixture {
	char dir[TEMPDIR_SIZE];
	int proc_fd, out_fd;
	struct records {
		struct {
			uint64_t addr, len, pgoff;
			char name[64];
		} items[512];
		size_t n;
	} told;
	uint64_t size_max; /* of the names, and of the code */
};

static int put(void *userdata, const void *bytes, size_t size)
{
	struct fixture *f = userdata;
	struct cursor c = cursor_from(bytes, size);
	struct perf_event_header header;
	struct record_mmap2 mmap;
	struct trailer trailer;

	assert_int_equal(cursor_get(&c, sizeof(header), &header), 0);
	assert_int_equal(header.type, PERF_RECORD_MMAP);
	assert_int_equal(header.misc, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(header.size, size);
	assert_int_equal(trailer_take(&c, PERFABI_SAMPLE_TYPE, &trailer), 0);
	assert_int_equal(record_read_mmap2(header.type, header.misc, c, &mmap), 0);
	assert_int_equal(mmap.pid, UINT32_MAX);
	assert_int_equal(trailer.time, 0);
	assert_true(f->told.n < ARRAY_LEN(f->told.items));
	f->told.items[f->told.n].addr = mmap.addr;
	f->told.items[f->told.n].len = mmap.len;
	f->told.items[f->told.n].pgoff = mmap.pgoff;
	(void)strncpy(f->told.items[f->told.n++].name, mmap.name, 63);
	return 0;
}

/* What the two requests to the collector do. */
static int copy_both(struct fixture *f, int proc_fd, const int fds[static 4],
		     struct kernelcode *ret_code, enum kernellack *ret_lack)
{
	_cleanup_(kernelmap_deinit) struct kernelmap map = {};
	enum kernellack lack = KERNELLACK_NONE;
	struct kernelcode names = {}, code = {};
	int r;

	r = kernelcode_copy_names(proc_fd, fds[0], fds[1], f->size_max, &map, &names, &lack);
	if (r == 0 && !lack)
		r = kernelcode_copy(proc_fd, &map, fds[2], fds[3], f->size_max, &code, &lack);
	if (r < 0)
		return r;
	*ret_lack = lack;
	if (!lack) {
		assert_true(names.bytes > 0);
		*ret_code = code;
		ret_code->n_left_out += names.n_left_out;
	}
	return 0;
}

static int read_records(struct fixture *f, int fd)
{
	_cleanup_(freep) uint8_t *bytes = malloc(1 << 20);
	const ssize_t n = bytes ? pread(fd, bytes, 1 << 20, 0) : -1;

	return n < 0 ? -EAGAIN : kernelfiles_put_records(bytes, (size_t)n, put, f);
}

static int copy_code(struct fixture *f, int proc_fd, struct kernelcode *ret_code,
		     enum kernellack *ret_lack)
{
	static const char *const names[] = { "kallsyms", "modules", "kcore" };
	int fds[4] = { -1, -1, -1, memfd_create("records", MFD_CLOEXEC) };
	int r = fds[3] < 0 ? -errno : 0;
	struct kernelcode code = *ret_code;

	for (unsigned i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
		fds[i] = openat(f->out_fd, names[i], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		r = fds[i] < 0 ? -errno : 0;
	}
	if (r == 0)
		r = copy_both(f, proc_fd, fds, &code, ret_lack);
	if (r == 0)
		r = read_records(f, fds[3]);
	if (r == 0)
		*ret_code = code;
	for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
		(void)fd_close(fds[i]);
	return r;
}

static void remove_file(const struct fixture *f, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(unlink(path), 0);
}

/* A byte that tells where it is. */
static uint8_t byte_at(uint64_t address)
{
	return (uint8_t)(address >> 12 ^ address ^ address >> 20) | 1;
}

/* Two pages of kernel, then a page of each module and of BPF, and a page of data between. */
static void write_kcore(const struct fixture *f)
{
	static const struct {
		uint64_t address, size;
	} memory[] = { { KERNEL, 3 * PAGE }, { MODULE, 16 * PAGE }, { BPF, 32 * PAGE } };
	static uint8_t bytes[64 * PAGE];
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
			      .e_phoff = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 1 + ARRAY_LEN(memory) };
	Elf64_Phdr note = { .p_type = PT_NOTE }, h = { .p_type = PT_LOAD };
	uint64_t offset = PAGE;

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &note, sizeof(note));
	for (size_t i = 0; i < ARRAY_LEN(memory); i++) {
		h.p_offset = offset;
		h.p_vaddr = memory[i].address;
		h.p_filesz = h.p_memsz = memory[i].size;
		memcpy(bytes + sizeof(header) + (i + 1) * sizeof(h), &h, sizeof(h));
		for (uint64_t at = 0; at < memory[i].size; at++)
			bytes[offset + at] = byte_at(memory[i].address + at);
		offset += memory[i].size;
	}
	memset(bytes + 2 * PAGE, 0, PAGE); /* the kernel's second page is all zero */
	tempdir_put(f->dir, "proc/kcore", bytes, sizeof(bytes));
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];

	tempdir_make("kernelcode", f->dir);
	(void)snprintf(path, sizeof(path), "%s/proc", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	f->proc_fd = dirs_open(AT_FDCWD, path);
	(void)snprintf(path, sizeof(path), "%s/kcore_dir", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	f->out_fd = dirs_open(AT_FDCWD, path);
	tempdir_put(f->dir, "proc/kallsyms", kallsyms, strlen(kallsyms));
	tempdir_put(f->dir, "proc/modules", modules, strlen(modules));
	write_kcore(f);
	f->size_max = 1 << 30;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tempdir_remove(f->dir);
	(void)close(f->proc_fd);
	(void)close(f->out_fd);
	free(f);
	return 0;
}

static void pieces(void **state)
{
	struct fixture *f = *state;
	enum kernellack lack = KERNELLACK_ODD_CODE;
	struct kernelmap map;

	assert_int_equal(kernelmap_init(&map, f->proc_fd, NULL, &lack), 0);
	assert_int_equal(lack, KERNELLACK_NONE);
	assert_int_equal(map.text, KERNEL);
	assert_int_equal(map.etext, KERNEL + 0x1800);
	assert_int_equal(map.pieces.n, 3);
	assert_int_equal(map.pieces.items[0].start, KERNEL);
	assert_int_equal(map.pieces.items[0].end, KERNEL + 2 * PAGE);
	assert_int_equal(map.pieces.items[1].start, MODULE); /* both, with nothing between */
	assert_int_equal(map.pieces.items[1].end, MODULE + 4 * PAGE);
	assert_int_equal(map.pieces.items[2].start, BPF);
	assert_int_equal(map.modules.n, 2);
	assert_string_equal(map.modules.items[0].name, "[one]");
	assert_int_equal(map.modules.items[0].size, 0x2000);
	assert_string_equal(map.modules.items[1].name, "[two]");
	kernelmap_deinit(&map);
}

/* However much else there is, the kernel and its modules have room. */
static void no_room(void **state)
{
	static const struct {
		size_t n_loose, n_modules;
		uint64_t step; /* from one to the next */
		size_t n_pieces, n_left_out;
	} rows[] = {
		{ 5000, 2, 40 * PAGE, 4096, 5000 - 4093 },
		{ 200000, 2, PAGE, 3, 200001 - (1 << 17) },
		{ 10, 5000, 40 * PAGE, 4096, 5000 - 4095 + 10 },
	};
	struct fixture *f = *state;
	enum kernellack lack;
	struct kernelmap map;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *names = NULL, *list = NULL;
		size_t names_size, list_size;
		FILE *to = open_memstream(&names, &names_size);

		print_message("  row %zu\n", i);
		for (size_t k = 0; k < rows[i].n_loose; k++)
			fprintf(to, "%" PRIx64 " t bpf_prog_%zu\t[bpf]\n", BPF + k * rows[i].step,
				k);
		fputs(kallsyms, to);
		(void)fclose(to);
		tempdir_put(f->dir, "proc/kallsyms", names, names_size);
		to = open_memstream(&list, &list_size);
		for (size_t k = 0; k < rows[i].n_modules; k++)
			fprintf(to, "m%zu 4096 0 - Live 0x%" PRIx64 "\n", k,
				MODULE - (k + 1) * rows[i].step);
		(void)fclose(to);
		tempdir_put(f->dir, "proc/modules", list, list_size);

		assert_int_equal(kernelmap_init(&map, f->proc_fd, NULL, &lack), 0);
		assert_int_equal(map.pieces.n, rows[i].n_pieces);
		assert_int_equal(map.n_left_out, rows[i].n_left_out);
		for (size_t k = 0; k <= map.modules.n; k++) {
			const uint64_t at = k < map.modules.n ? map.modules.items[k].start : KERNEL;
			size_t p = 0;

			while (p < map.pieces.n && map.pieces.items[p].end <= at)
				p++;
			assert_true(p < map.pieces.n && map.pieces.items[p].start <= at);
		}
		kernelmap_deinit(&map);
	}
	assert_int_equal(kernelcode_check(f->proc_fd, &lack), 0);
	assert_int_equal(lack, KERNELLACK_NONE);
}

/* All that the decoder finds is what was in memory. */
static void check_written(const struct fixture *f, bool is_real)
{
	_cleanup_(objects_freep) struct objects *objects = NULL;
	struct resolver *resolver;
	struct kcore_mappings all = {};
	size_t n_symbols, n_bytes = 0;
	struct kcore kcore;

	assert_int_equal(objects_new(f->dir, &objects), 0);
	assert_int_equal(kcore_init(&kcore, objects), 0);
	assert_non_null(kcore.kernel);
	assert_int_equal(kcore_map_all(&kcore, &all), 0);
	for (size_t i = 0; i < f->told.n; i++)
		assert_int_equal(kcore_map_module(&kcore, f->told.items[i].name,
						  f->told.items[i].addr, f->told.items[i].len, 1,
						  &all),
				 0);
	assert_true(all.list.n >= f->told.n);
	assert_int_equal(resolver_new(&resolver), 0);
	for (size_t i = 0; i < all.list.n; i++) {
		const struct mapping *m = &all.list.items[i];
		uint32_t symbol;
		uint64_t end;

		assert_true(m->offset + m->size <= m->object->size);
		for (uint64_t at = 0; at < m->size; at++) {
			const uint8_t byte = *object_bytes(m->object, m->offset + at, 1);

			n_bytes += byte != 0;
			if (!is_real)
				assert_int_equal(byte, byte_at(m->start + at));
		}
		assert_int_equal(
		    resolver_find(resolver, m->object->symbols, m->start + 0x40, &symbol, &end), 0);
		print_message("  %lx + %lx: %s, %s\n", (unsigned long)m->start,
			      (unsigned long)m->size, m->object->id.name,
			      resolver_symbols(resolver, &n_symbols)[symbol]->name);
	}
	assert_true(n_bytes > PAGE);
	(void)resolver_free(resolver);
	vec_deinit(&all.list);
	kcore_deinit(&kcore);
}

static void what_is_written(void **state)
{
	struct fixture *f = *state;
	enum kernellack lack = KERNELLACK_ODD_CODE;
	char text[1024] = "";
	struct kernelcode code = {};
	FILE *file;

	assert_int_equal(kernelcode_check(f->proc_fd, &lack), 0);
	assert_int_equal(lack, KERNELLACK_NONE);
	assert_int_equal(copy_code(f, f->proc_fd, &code, &lack), 0);
	assert_int_equal(lack, KERNELLACK_NONE);
	assert_int_equal(code.bytes, PAGE + 4 * PAGE + 17 * PAGE);
	assert_int_equal(code.n_left_out, 0);
	/* The second page of the kernel has no bytes: it is no code of zeros. */
	assert_int_equal(code.bytes_unreadable, PAGE);
	assert_int_equal(f->told.n, 3);
	assert_string_equal(f->told.items[0].name, "[kernel.kallsyms]_text");
	assert_int_equal(f->told.items[0].addr, KERNEL);
	assert_int_equal(f->told.items[0].len, 0x1800);
	assert_int_equal(f->told.items[0].pgoff, KERNEL);
	assert_string_equal(f->told.items[1].name, "[one]");
	assert_int_equal(f->told.items[1].addr, MODULE);
	check_written(f, false);

	/* Of the names those of code; the modules as they are. */
	file = fdopen(openat(f->out_fd, "kallsyms", O_RDONLY | O_CLOEXEC), "r");
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	(void)fclose(file);
	assert_non_null(strstr(text, "T _text\n"));
	assert_non_null(strstr(text, "\t[bpf]\n"));
	assert_null(strstr(text, "data"));
	memset(text, 0, sizeof(text));
	file = fdopen(openat(f->out_fd, "modules", O_RDONLY | O_CLOEXEC), "r");
	assert_int_equal(fread(text, 1, sizeof(text) - 1, file), strlen(modules));
	(void)fclose(file);
	assert_string_equal(text, modules);
}

static void what_is_missing(void **state)
{
	static const char no_addresses[] = "0000000000000000 T _text\n0000000000000000 T _etext\n";
	static const char no_text[] = "ffffffff81000000 T start_kernel\n";
	static const char backwards[] = "ffffffff81000000 T _text\nffffffff80000000 T _etext\n";
	static const struct {
		const char *name, *text; /* NULL: there is none */
		enum kernellack lack;
		const char *why;
	} rows[] = {
		{ "kallsyms", NULL, KERNELLACK_NO_NAMES, "ProcSubset=pid" },
		{ "kallsyms", "", KERNELLACK_EMPTY_NAMES, "ProtectKernelTunables=" },
		{ "kallsyms", no_addresses, KERNELLACK_NO_ADDRESS,
		  "CAP_SYSLOG is missing (under systemd, ProtectKernelLogs=" },
		{ "kallsyms", no_text, KERNELLACK_ODD_NAMES, "does not say where" },
		{ "kallsyms", backwards, KERNELLACK_ODD_NAMES, "does not say where" },
		{ "kcore", NULL, KERNELLACK_NO_CODE,
		  "CAP_SYS_RAWIO is missing (under systemd, PrivateDevices=" },
		{ "kcore", "", KERNELLACK_NO_CODE, "CAP_SYS_RAWIO" },
		{ "kcore", "no ELF file, but long enough to be the header of one, this text is",
		  KERNELLACK_ODD_CODE, "no ELF file" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture *f;
		struct kernelcode code = { .bytes = 7 };
		enum kernellack lack = KERNELLACK_NONE;
		char name[32];

		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
		print_message("  row %zu\n", i);
		(void)snprintf(name, sizeof(name), "proc/%s", rows[i].name);
		if (rows[i].text)
			tempdir_put(f->dir, name, rows[i].text, strlen(rows[i].text));
		else
			remove_file(f, name);
		assert_int_equal(kernelcode_check(f->proc_fd, &lack), 0);
		assert_int_equal(lack, rows[i].lack);
		assert_non_null(strstr(kernellack_text(lack), rows[i].why));
		lack = KERNELLACK_NONE;
		assert_int_equal(copy_code(f, f->proc_fd, &code, &lack), 0);
		assert_int_equal(lack, rows[i].lack);
		assert_int_equal(code.bytes, 7);
		assert_int_equal(f->told.n, 0);
	}
	assert_null(kernellack_text(KERNELLACK_NONE));
}

/* What is no want of rights is not called one. */
static void another_error(void **state)
{
	struct fixture *f = *state;
	enum kernellack lack = KERNELLACK_NONE;
	struct kernelcode code = {};

	remove_file(f, "proc/kcore");
	assert_int_equal(symlinkat("kcore", f->proc_fd, "kcore"), 0);
	assert_int_equal(kernelcode_check(f->proc_fd, &lack), -ELOOP);
	assert_int_equal(copy_code(f, f->proc_fd, &code, &lack), -ELOOP);
	assert_int_equal(lack, KERNELLACK_NONE);
}

/* Too many names are an error; of too much code, as much is copied as may be. */
static void limits(void **state)
{
	static const struct {
		const char *name;
		uint64_t size_max;
		int error;
		uint64_t bytes;
		size_t n_left_out;
	} rows[] = {
		{ "no name", 10, -EFBIG, 0, 0 },
		{ "names, but no modules", 200, -EFBIG, 0, 0 },
		/* Of the kernel, the modules and the BPF program: 1, 4 and 17 pages. */
		{ "the kernel", PAGE, 0, PAGE, 2 },
		{ "the modules' first page", 2 * PAGE, 0, 2 * PAGE, 2 },
		{ "the modules", 5 * PAGE, 0, 5 * PAGE, 1 },
		{ "all but a page", 21 * PAGE, 0, 21 * PAGE, 1 },
		{ "all", 22 * PAGE, 0, 22 * PAGE, 0 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum kernellack lack = KERNELLACK_NONE;
		struct kernelcode code = {};

		print_message("  %s\n", rows[i].name);
		f->told.n = 0;
		f->size_max = rows[i].size_max;
		assert_int_equal(copy_code(f, f->proc_fd, &code, &lack), rows[i].error);
		assert_int_equal(code.bytes, rows[i].bytes);
		assert_int_equal(code.n_left_out, rows[i].n_left_out);
		assert_int_equal(f->told.n, rows[i].error ? 0 : 3);
	}
	check_written(f, false);
}

static void a_kernel_without_modules(void **state)
{
	struct fixture *f = *state;
	enum kernellack lack;
	struct kernelcode code = {};

	remove_file(f, "proc/modules");
	assert_int_equal(copy_code(f, f->proc_fd, &code, &lack), 0);
	assert_int_equal(lack, KERNELLACK_NONE);
	assert_int_equal(f->told.n, 1);
}

static void this_kernel(void **state)
{
	struct fixture *f = *state;
	const int proc_fd = dirs_open(AT_FDCWD, "/proc");
	enum kernellack lack;
	struct kernelcode code = {};

	assert_int_equal(kernelcode_check(proc_fd, &lack), 0);
	if (lack) {
		print_message("%s\n", kernellack_text(lack));
		(void)close(proc_fd);
		skip();
	}
	assert_int_equal(copy_code(f, proc_fd, &code, &lack), 0);
	assert_int_equal(lack, KERNELLACK_NONE);
	print_message("  %lu bytes\n", (unsigned long)code.bytes);
	check_written(f, true);
	(void)close(proc_fd);
}

static void odd_headers(void **state)
{
	static const struct {
		size_t offset; /* of a byte of kcore's header */
		uint8_t value;
	} rows[] = {
		{ EI_MAG0, 'E' },
		{ EI_CLASS, ELFCLASS32 },
		{ offsetof(Elf64_Ehdr, e_phentsize), 32 },
		{ offsetof(Elf64_Ehdr, e_phoff) + 4, 1 }, /* behind its end */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture *f;
		enum kernellack lack;
		char path[128];
		int fd;

		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
		print_message("  row %zu\n", i);
		(void)snprintf(path, sizeof(path), "%s/proc/kcore", f->dir);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(fd, &rows[i].value, 1, (off_t)rows[i].offset), 1);
		(void)close(fd);
		assert_int_equal(kernelcode_check(f->proc_fd, &lack), 0);
		assert_int_equal(lack, KERNELLACK_ODD_CODE);
	}
}

static int write_anew(void *userdata)
{
	struct fixture *f = userdata;
	struct kernelcode code = { .bytes = 7 };
	enum kernellack lack = KERNELLACK_NONE;
	char command[128];
	int r;

	(void)snprintf(command, sizeof(command), "rm -f %s/kcore_dir/*", f->dir);
	assert_int_equal(system(command), 0);
	f->told.n = 0;
	r = copy_code(f, f->proc_fd, &code, &lack);
	if (r < 0)
		assert_int_equal(code.bytes, 7);
	return r < 0 ? r : lack ? -ENODATA : 0;
}

static void is_written(void *userdata)
{
	const struct fixture *f = userdata;

	assert_int_equal(f->told.n, 3);
	/* Memory that cannot be read is left out. */
	if (!failing_name() || strcmp(failing_name(), "pread") != 0)
		check_written(f, false);
}

static void calls_that_fail(void **state)
{
	failing_each(write_anew, is_written, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pieces, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_kernel_without_modules, set_up, tear_down),
		cmocka_unit_test_setup_teardown(this_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(odd_headers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
