/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Minidebug: sections made by hand, and a program of ours that is stripped as Fedora strips its
 * packages.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <inttypes.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>

#include "decoder/image/objects.h"
#include "decoder/symbol/minidebug.h"
#include "decoder/symbol/source.h"
#include "decoder/util/filebytes.h"
#include "tests/lib/symbolat.h"
#include "tests/lib/tempdir.h"

static const char inside[] = "what was compressed";

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[24];
	uint8_t data[65536];
};

/* An ELF file with a .gnu_debugdata that has @size bytes, compressed. */
static void make_image(const void *bytes, size_t size, struct image *ret_image)
{
	size_t n = 0;

	*ret_image = (struct image){
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_shoff = offsetof(struct image, sections),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 2 },
		.names = "\0.gnu_debugdata",
	};
	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, bytes, size,
						 ret_image->data, &n, sizeof(ret_image->data)),
			 LZMA_OK);
	ret_image->sections[1] = (Elf64_Shdr){ .sh_name = 1,
					       .sh_type = SHT_PROGBITS,
					       .sh_offset = offsetof(struct image, data),
					       .sh_size = n };
	ret_image->sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					       .sh_offset = offsetof(struct image, names),
					       .sh_size = sizeof(ret_image->names) };
}

/* Return: how many bytes were decompressed. */
static uint64_t size_of(const struct image *image)
{
	_cleanup_(minidebug_deinit) struct minidebug minidebug = {};
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	uint64_t size = 0;

	assert_int_equal(filebytes_new_in_memory(image, sizeof(*image), &file), 0);
	assert_int_equal(minidebug_read(file, &minidebug), 0);
	if (minidebug.file) {
		size = filebytes_size(minidebug.file);
		assert_non_null(filebytes_get(minidebug.file, 0, size));
	}
	return size;
}

static void by_hand(void **state)
{
	static struct image image;
	uint64_t size;

	(void)state;
	make_image(inside, sizeof(inside), &image);
	assert_int_equal(size_of(&image), sizeof(inside));

	size = image.sections[1].sh_size;
	for (image.sections[1].sh_size = 0; image.sections[1].sh_size < size;
	     image.sections[1].sh_size++)
		assert_int_equal(size_of(&image), 0);
	assert_int_equal(size_of(&image), sizeof(inside));

	image.data[size / 2] ^= 1;
	assert_int_equal(size_of(&image), 0);
	image.data[size / 2] ^= 1;
	image.sections[1].sh_type = SHT_NOBITS;
	assert_int_equal(size_of(&image), 0);
	image.sections[1].sh_type = SHT_PROGBITS;
	image.names[3] = 'G';
	assert_int_equal(size_of(&image), 0);
}

/* A few bytes may claim to be very many. */
static void too_large(void **state)
{
	_cleanup_(freep) uint8_t *zeros = calloc(1, MINIDEBUG_MAX + 1);
	static struct image image;

	(void)state;
	assert_non_null(zeros);
	make_image(zeros, MINIDEBUG_MAX, &image);
	assert_int_equal(size_of(&image), MINIDEBUG_MAX);
	make_image(zeros, MINIDEBUG_MAX + 1, &image);
	assert_int_equal(size_of(&image), 0);
}

/* The function below is called @name in @program, and NULL: by its place. */
static __attribute__((__noinline__)) void expect_own_name(const char *dir, const char *program,
							  const char *name)
{
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const struct object *object = NULL;
	char path[512], line[256], command[600], unnamed[64];
	uint64_t address = 0;
	FILE *nm;

	(void)snprintf(command, sizeof(command), "nm %s/whole", dir);
	nm = popen(command, "re");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		char found[128];
		unsigned long at;

		if (sscanf(line, "%lx %*c %127s", &at, found) == 2 &&
		    strcmp(found, "expect_own_name") == 0)
			address = at;
	}
	assert_int_equal(pclose(nm), 0);
	assert_true(address > 0);

	(void)snprintf(path, sizeof(path), "%s/%s", dir, program);
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(objects_find(objects, path, NULL, &object), 0);
	(void)snprintf(unnamed, sizeof(unnamed), "%s+0x%" PRIx64, program, address);
	symbolat_expect(object->symbols, address, name ?: unnamed);
}

static void stripped(void **state)
{
	char dir[TEMPDIR_SIZE], command[1024];

	(void)state;
	if (system("command -v objcopy >/dev/null && command -v xz >/dev/null") != 0) {
		print_message("objcopy or xz is missing: install binutils and xz-utils\n");
		skip();
	}
	tempdir_make("minidebug", dir);
	(void)snprintf(command, sizeof(command),
		       "cd %s && cp /proc/%d/exe whole && strip -o stripped whole && "
		       "objcopy --only-keep-debug whole debug && strip -g -o mini debug && "
		       "xz -k mini && "
		       "objcopy --add-section .gnu_debugdata=mini.xz stripped fedora",
		       dir, (int)getpid());
	assert_int_equal(system(command), 0);
	expect_own_name(dir, "whole", "expect_own_name");
	expect_own_name(dir, "stripped", NULL);
	expect_own_name(dir, "fedora", "expect_own_name");
	tempdir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(too_large),
		cmocka_unit_test(stripped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
