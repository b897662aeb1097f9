/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Ehframe: every entry of real files against what readelf prints, and a file made by hand that is
 * spoiled one field at a time.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/unwind.h"
#include "decoder/util/filebytes.h"

/* Return: how many functions there are, found by walking upwards. */
static size_t count(const struct ehframe *ehframe)
{
	uint64_t start, end;
	size_t n = 0;

	for (uint64_t at = 0; at != UINT64_MAX; at = end) {
		n += ehframe_find(ehframe, at, &start, &end);
		assert_true(start <= at && at < end);
	}
	return n;
}

/* --- real files ------------------------------------------------------------------------------- */

/* Compare with readelf. Return: how many entries it printed. */
static size_t agree_on_each(const struct ehframe *ehframe, const char *path)
{
	uint64_t from, to, start, end;
	char command[PATH_MAX + 256];
	size_t n = 0;
	FILE *lines;

	(void)snprintf(command, sizeof(command),
		       "readelf --debug-dump=frames %s 2>/dev/null | "
		       "sed -nE 's/.* FDE .*pc=([0-9a-f]+)\\.\\.([0-9a-f]+)$/\\1 \\2/p'",
		       path);
	lines = popen(command, "re");
	assert_non_null(lines);
	while (fscanf(lines, "%" SCNx64 " %" SCNx64, &from, &to) == 2) {
		n++;
		if (!ehframe_find(ehframe, from, &start, &end) || start != from || end != to)
			fail_msg("%s: 0x%" PRIx64 ": found up to 0x%" PRIx64
				 ", readelf has 0x%" PRIx64,
				 path, from, end, to);
		assert_true(ehframe_find(ehframe, to - 1, &start, &end));
		assert_true(start == from && end == to);
	}
	assert_int_equal(pclose(lines), 0);
	return n;
}

static void real_files(void **state)
{
	static const char *const paths[] = {
		"/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib32/libc.so.6",
		"/bin/ls",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/proc/self/exe",
		"/usr/bin/python3",
		"/usr/bin/node",
	};
	size_t n_files = 0, n_functions = 0;

	(void)state;
	if (system("command -v readelf >/dev/null") != 0) {
		print_message("readelf is missing: install binutils\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		_cleanup_(ehframe_freep) struct ehframe *ehframe = NULL;
		_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		struct fileset set;
		char real[PATH_MAX] = "";
		size_t n;

		if (fd < 0) {
			print_message("%s is missing\n", paths[i]);
			continue;
		}
		assert_non_null(realpath(paths[i], real));
		fileset_init(&set);
		assert_int_equal(filebytes_new(&set, real, &fd, false, &file), 0);
		assert_int_equal(ehframe_new(file, &ehframe), 0);
		n = agree_on_each(ehframe, real);
		print_message("  %zu functions in %s\n", n, real);
		assert_true(n > 0);
		assert_int_equal(count(ehframe), n);
		ehframe = ehframe_free(ehframe);
		file = filebytes_unref(file);
		fileset_deinit(&set);
		n_files++;
		n_functions += n;
	}
	assert_true(n_files > 0 && n_functions > 1000);
}

/*
 * What nm calls NAME.cold is a part, unless nothing is on the stack there; what else it calls a
 * function is none.
 */
static void parts(void **state)
{
	_cleanup_(ehframe_freep) struct ehframe *ehframe = NULL;
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	size_t n_cold = 0, n_parts = 0, n_functions = 0;
	char line[4096], command[PATH_MAX + 64], real[PATH_MAX];
	uint64_t address, start, end;
	struct ehframe_entry entry;
	struct fileset set;
	FILE *lines;
	int fd;

	(void)state;
	if (system("command -v nm >/dev/null") != 0) {
		print_message("nm is missing: install binutils\n");
		skip();
	}
	assert_non_null(realpath("/proc/self/exe", real));
	fd = open(real, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	fileset_init(&set);
	assert_int_equal(filebytes_new(&set, real, &fd, false, &file), 0);
	assert_int_equal(ehframe_new(file, &ehframe), 0);
	(void)snprintf(command, sizeof(command), "nm -f sysv %s", real);
	lines = popen(command, "re");
	assert_non_null(lines);
	while (fgets(line, sizeof(line), lines)) {
		char name[1024];
		bool is_cold;

		if (sscanf(line, "%1023[^| ] |%" SCNx64 "| %*1[Tt] | FUNC", name, &address) != 2 ||
		    !ehframe_find(ehframe, address, &start, &end) || start != address)
			continue;
		is_cold = strstr(name, ".cold");
		n_cold += is_cold;
		n_functions++;
		assert_true(ehframe_find_entry(ehframe, address, &entry));
		if (unwind_begins_inside(&entry))
			n_parts++;
		if (unwind_begins_inside(&entry) && !is_cold)
			fail_msg("%s is no part", name);
	}
	assert_int_equal(pclose(lines), 0);
	print_message("  %zu of %zu parts among %zu functions\n", n_parts, n_cold, n_functions);
	assert_true(n_functions > 20);
	assert_true(n_parts * 4 >= n_cold * 3);
	ehframe = ehframe_free(ehframe);
	file = filebytes_unref(file);
	fileset_deinit(&set);
}

/* --- a file made by hand ---------------------------------------------------------------------- */

#define ADDRESS 0x10000u /* of its first byte */
#define FIRST   0x1000u  /* two functions, of 16 and 32 bytes */
#define SECOND  0x2000u

struct entry {
	uint32_t length, common;
	int32_t start;
	int32_t size;
	uint8_t augmentation_size, pad[3];
};

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr load, table_segment;
	struct {
		uint8_t version, frame_encoding, count_encoding, table_encoding;
		int32_t frame;
		uint32_t n;
		struct {
			int32_t start, entry;
		} rows[2];
	} table;
	struct {
		uint32_t length, id;
		uint8_t version;
		char augmentation[5];
		uint8_t code_factor, data_factor, return_register, augmentation_size;
		uint8_t personality_encoding, personality[4], data_encoding;
		uint8_t encoding, pad[3];
	} common;
	struct entry entries[2];
	uint32_t end;
	char names[16];
	Elf64_Shdr sections[3];
};

static int32_t entry_start(size_t i, uint32_t function)
{
	return (int32_t)(function - (ADDRESS + offsetof(struct image, entries[i]) +
				     offsetof(struct entry, start)));
}

static void make_image(struct image *ret_image)
{
	const uint32_t table = ADDRESS + offsetof(struct image, table);
	const uint32_t entries[2] = { ADDRESS + offsetof(struct image, entries[0]),
				      ADDRESS + offsetof(struct image, entries[1]) };

	*ret_image = (struct image){
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct image, load),
			    .e_shoff = offsetof(struct image, sections),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 2 },
		.load = { .p_type = PT_LOAD, .p_vaddr = ADDRESS, .p_filesz = sizeof(struct image) },
		.table_segment = { .p_type = PT_GNU_EH_FRAME,
				   .p_offset = offsetof(struct image, table),
				   .p_vaddr = table,
				   .p_filesz = sizeof(ret_image->table) },
		.table = { 1, 0x1b, 0x03, 0x3b, .n = 2,
			   .rows = { { (int32_t)(FIRST - table), (int32_t)(entries[0] - table) },
				     { (int32_t)(SECOND - table),
				       (int32_t)(entries[1] - table) } } },
		.common = { .length = sizeof(ret_image->common) - 4,
			    .version = 1,
			    .augmentation = "zPLR",
			    .code_factor = 1,
			    .data_factor = 0x78,
			    .return_register = 16,
			    .augmentation_size = 7,
			    .personality_encoding = 0x9b,
			    .data_encoding = 0x1b,
			    .encoding = 0x1b },
		.entries = { { .length = sizeof(struct entry) - 4,
			       .common = offsetof(struct image, entries[0]) + 4 -
					 offsetof(struct image, common),
			       .start = entry_start(0, FIRST),
			       .size = 16 },
			     { .length = sizeof(struct entry) - 4,
			       .common = offsetof(struct image, entries[1]) + 4 -
					 offsetof(struct image, common),
			       .start = entry_start(1, SECOND),
			       .size = 32 } },
		.names = "\0.eh_frame",
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_PROGBITS,
				      .sh_addr = ADDRESS + offsetof(struct image, common),
				      .sh_offset = offsetof(struct image, common),
				      .sh_size = offsetof(struct image, names) -
						 offsetof(struct image, common) },
			      [2] = { .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct image, names),
				      .sh_size = sizeof(ret_image->names) } },
	};
}

/* Bits of the functions that are found: with and without a section header. */
struct row {
	const char *title;
	size_t at, size;
	uint64_t value;
	unsigned with, without;
};

#define FIELD(member) offsetof(struct image, member), sizeof(((struct image *)NULL)->member)

/* clang-format off */
static const struct row rows[] = {
	{ "as it should be", FIELD(table.n), 2, 3, 3 },
	{ "no table", FIELD(table_segment.p_type), PT_NULL, 3, 0 },
	{ "a table of another version", FIELD(table.version), 2, 3, 0 },
	{ "a table that is encoded otherwise", FIELD(table.table_encoding), 0x33, 3, 0 },
	{ "a table without a count", FIELD(table.count_encoding), 0xff, 3, 0 },
	{ "a table that does not say where the entries are", FIELD(table.frame_encoding), 0xff, 3, 0 },
	{ "a table that is cut in its head", FIELD(table_segment.p_filesz), 11, 3, 0 },
	{ "a table that is cut behind a row", FIELD(table_segment.p_filesz), 12 + 8 + 7, 1, 1 },
	{ "a table beyond the file", FIELD(table_segment.p_offset), UINT64_MAX, 3, 0 },
	{ "one row", FIELD(table.n), 1, 1, 1 },
	{ "too many rows", FIELD(table.n), UINT32_MAX, 3, 3 },
	{ "a row that begins elsewhere", FIELD(table.rows[0].start), (uint32_t)-1, 2, 2 },
	{ "a row with an entry that is not loaded", FIELD(table.rows[0].entry), INT32_MAX, 2, 2 },
	{ "nothing is loaded", FIELD(load.p_type), PT_NULL, 0, 0 },
	{ "not linked", FIELD(header.e_type), ET_REL, 0, 0 },
	{ "no ELF file", FIELD(header.e_ident[0]), 0, 0, 0 },
	{ "an entry that ends all", FIELD(entries[0].length), 0, 2, 2 },
	{ "an entry that is too short", FIELD(entries[0].length), 3, 2, 2 },
	{ "an entry that is cut", FIELD(entries[0].length), 11, 2, 2 },
	{ "an entry that is too long", FIELD(entries[0].length), 0xfffffff0, 2, 2 },
	{ "an entry of 64 bits beyond the file", FIELD(entries[0].length), UINT32_MAX, 2, 2 },
	{ "an entry that belongs to nothing", FIELD(entries[0].common), 0x7fffffff, 2, 2 },
	{ "an entry that belongs to itself", FIELD(entries[0].common), 4, 2, 2 },
	{ "an entry of no bytes", FIELD(entries[0].size), 0, 2, 2 },
	{ "an entry of fewer than no bytes", FIELD(entries[0].size), UINT32_MAX, 2, 2 },
	{ "what is common is an entry", FIELD(common.id), 1, 0, 0 },
	{ "another version", FIELD(common.version), 2, 0, 0 },
	{ "the version with a long register number", FIELD(common.version), 3, 3, 3 },
	{ "a letter that is not known", FIELD(common.augmentation[1]), 'X', 0, 0 },
	{ "letters without their size", FIELD(common.augmentation[0]), 'R', 0, 0 },
	{ "a signal handler", FIELD(common.augmentation[2]), 'S', 3, 3 },
	{ "an indirect address", FIELD(common.encoding), 0x9b, 0, 0 },
	{ "an address that counts from the table", FIELD(common.encoding), 0x3b, 0, 0 },
	{ "an address of any length", FIELD(common.encoding), 0x19, 0, 0 },
	{ "a personality of no length", FIELD(common.personality_encoding), 0xff, 0, 0 },
	{ "factors that do not end", FIELD(common.code_factor), 0xff, 0, 0 },
};
/* clang-format on */

static unsigned find_both(const struct image *image)
{
	_cleanup_(ehframe_freep) struct ehframe *ehframe = NULL;
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	uint64_t start, end;
	unsigned found = 0;

	assert_int_equal(filebytes_new_in_memory(image, sizeof(*image), &file), 0);
	assert_int_equal(ehframe_new(file, &ehframe), 0);
	(void)count(ehframe);
	if (ehframe_find(ehframe, FIRST + 15, &start, &end)) {
		assert_true(start == FIRST && end == FIRST + 16);
		found |= 1;
	}
	if (ehframe_find(ehframe, SECOND, &start, &end)) {
		assert_true(start == SECOND && end == SECOND + 32);
		found |= 2;
	}
	assert_false(ehframe_find(ehframe, FIRST - 1, &start, &end));
	assert_true(!(found & 1) || end == FIRST);
	assert_false(ehframe_find(ehframe, FIRST + 16, &start, &end));
	assert_true(found != 3 || (start == FIRST + 16 && end == SECOND));
	assert_false(ehframe_find(ehframe, SECOND + 32, &start, &end));
	assert_true(end == UINT64_MAX);
	return found;
}

static void spoiled(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct image image;

		print_message("  %s\n", rows[i].title);
		make_image(&image);
		memcpy((uint8_t *)&image + rows[i].at, &rows[i].value, rows[i].size);
		assert_int_equal(find_both(&image), rows[i].with);
		image.header.e_shnum = 0;
		assert_int_equal(find_both(&image), rows[i].without);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_files),
		cmocka_unit_test(parts),
		cmocka_unit_test(spoiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
