/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/rawcode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"

#define PAGE UINT64_C(4096)

struct fixture {
	char dir[TEMPDIR_SIZE];
	char addresses[96], pages[96], elf[96], none[96];
	struct rawcode code;
	char *message;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tempdir_make("rawcode", f->dir);
	(void)snprintf(f->addresses, sizeof(f->addresses), "%s/addresses", f->dir);
	(void)snprintf(f->pages, sizeof(f->pages), "%s/pages", f->dir);
	(void)snprintf(f->elf, sizeof(f->elf), "%s/elf", f->dir);
	(void)snprintf(f->none, sizeof(f->none), "%s/none", f->dir);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	rawcode_deinit(&f->code);
	free(f->message);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static void put_pages(const struct fixture *f, const uint64_t *addresses, size_t n)
{
	static const uint8_t bytes[8 * 4096];

	tempdir_put(f->dir, "addresses", addresses, n * sizeof(*addresses));
	tempdir_put(f->dir, "pages", bytes, n * PAGE);
}

static void assert_code(const struct fixture *f, size_t i, const char *path, uint64_t offset,
			uint64_t size, uint64_t address)
{
	assert_true(i < f->code.n);
	assert_string_equal(f->code.items[i].path, path);
	assert_int_equal(f->code.items[i].offset, offset);
	assert_int_equal(f->code.items[i].size, size);
	assert_int_equal(f->code.items[i].address, address);
}

static int add_pages(void *userdata)
{
	struct fixture *f = userdata;
	int r;

	f->code = (struct rawcode){};
	r = rawcode_add_pages(&f->code, f->addresses, f->pages, &f->message);
	if (r < 0) {
		free(f->message);
		f->message = NULL;
		rawcode_deinit(&f->code);
	}
	return r;
}

/* Pages that follow each other in memory and in the file are one piece. */
static void are_joined(void *userdata)
{
	struct fixture *f = userdata;

	assert_int_equal(f->code.n, 3);
	assert_code(f, 0, f->pages, 0, 2 * PAGE, 0x1000);
	assert_code(f, 1, f->pages, 2 * PAGE, PAGE, 0x4000);
	assert_code(f, 2, f->pages, 3 * PAGE, 2 * PAGE, 0x2000);
	rawcode_deinit(&f->code);
}

static void pages(void **state)
{
	static const uint64_t addresses[] = { 0x1000, 0x2000, 0x4000, 0x2000, 0x3000 };
	struct fixture *f = *state;

	put_pages(f, addresses, ARRAY_LEN(addresses));
	assert_int_equal(add_pages(f), 0);
	are_joined(f);
	failing_each(add_pages, are_joined, f);
}

/* Those of two files are two pieces, wherever they are. */
static void two_files(void **state)
{
	static const uint64_t addresses[] = { 0x1000 };
	struct fixture *f = *state;
	char other[96];

	put_pages(f, addresses, 1);
	(void)snprintf(other, sizeof(other), "%s", f->pages);
	assert_int_equal(rawcode_add_pages(&f->code, f->addresses, f->pages, &f->message), 0);
	assert_int_equal(rawcode_add_pages(&f->code, f->addresses, other, &f->message), 0);
	assert_int_equal(rawcode_add_file(&f->code, f->pages, 0x2000, &f->message), 0);
	assert_int_equal(f->code.n, 3);
	assert_code(f, 1, other, 0, PAGE, 0x1000);
	assert_code(f, 2, f->pages, 0, PAGE, 0x2000);
	assert_null(f->message);
}

static void assert_refused(struct fixture *f, int r, int expected, const char *message)
{
	assert_int_equal(r, expected);
	assert_non_null(f->message);
	if (!strstr(f->message, message))
		fail_msg("%s", f->message);
	free(f->message);
	f->message = NULL;
	assert_int_equal(f->code.n, 0);
}

static void bad_pages(void **state)
{
	static const uint64_t addresses[] = { 0x1000, 0x2000 };
	struct fixture *f = *state;

	put_pages(f, addresses, 2);
	assert_refused(f, rawcode_add_pages(&f->code, f->none, f->pages, &f->message), -ENOENT,
		       "/none: cannot read: No such file or directory");
	assert_refused(f, rawcode_add_pages(&f->code, f->addresses, f->none, &f->message), -ENOENT,
		       "/none: cannot read: No such file or directory");
	tempdir_put(f->dir, "addresses", addresses, 8);
	assert_refused(f, rawcode_add_pages(&f->code, f->addresses, f->pages, &f->message), -EINVAL,
		       "/addresses holds 1 addresses of 8 bytes and ");
	tempdir_put(f->dir, "addresses", addresses, 15);
	assert_refused(f, rawcode_add_pages(&f->code, f->addresses, f->pages, &f->message), -EINVAL,
		       "expected one address for each page");
	tempdir_put(f->dir, "addresses", addresses, 8);
	tempdir_put(f->dir, "pages", addresses, 15);
	assert_refused(f, rawcode_add_pages(&f->code, f->addresses, f->pages, &f->message), -EINVAL,
		       "/pages 0 pages of 4096 bytes");
}

static void put_elf(const struct fixture *f, const Elf64_Phdr *segments, size_t n)
{
	uint8_t bytes[1024] = {};
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)n,
	};

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), segments, n * sizeof(*segments));
	tempdir_put(f->dir, "elf", bytes, sizeof(bytes));
}

#define SEGMENT(type, flags, offset, address, size)                                               \
	{                                                                                         \
		.p_type = (type), .p_flags = (flags), .p_offset = (offset), .p_vaddr = (address), \
		.p_filesz = (size), .p_memsz = 2 * (size) + 1                                     \
	}

static const Elf64_Phdr segments[] = {
	SEGMENT(PT_LOAD, PF_R, 0, 0x400000, 100),
	SEGMENT(PT_LOAD, PF_R | PF_X, 100, 0x401000, 50),
	SEGMENT(PT_NOTE, PF_R | PF_X, 100, 0x401000, 50),
	SEGMENT(PT_LOAD, PF_R | PF_X, 200, 0x402000, 0),
	SEGMENT(PT_LOAD, PF_X, 300, 0x403000, 1),
};

static int add_elf(void *userdata)
{
	struct fixture *f = userdata;
	int r;

	f->code = (struct rawcode){};
	r = rawcode_add_elf(&f->code, f->elf, &f->message);
	if (r < 0) {
		free(f->message);
		f->message = NULL;
		rawcode_deinit(&f->code);
	}
	return r;
}

static void has_code(void *userdata)
{
	struct fixture *f = userdata;

	assert_int_equal(f->code.n, 2);
	assert_code(f, 0, f->elf, 100, 50, 0x401000);
	assert_code(f, 1, f->elf, 300, 1, 0x403000);
	rawcode_deinit(&f->code);
}

static void elf_files(void **state)
{
	struct fixture *f = *state;

	put_elf(f, segments, ARRAY_LEN(segments));
	assert_int_equal(add_elf(f), 0);
	has_code(f);
	failing_each(add_elf, has_code, f);
	put_elf(f, segments, 1);
	assert_refused(f, rawcode_add_elf(&f->code, f->elf, &f->message), -EINVAL,
		       "/elf: has no executable segment");
	tempdir_put_text(f->dir, "elf", "not at all");
	assert_refused(f, rawcode_add_elf(&f->code, f->elf, &f->message), -EINVAL,
		       "/elf: is no ELF file");
	tempdir_put_text(f->dir, "elf", "");
	assert_refused(f, rawcode_add_elf(&f->code, f->elf, &f->message), -EINVAL,
		       "/elf: is no ELF file");
	assert_refused(f, rawcode_add_elf(&f->code, f->none, &f->message), -ENOENT,
		       "/none: cannot read: No such file or directory");
}

/* Code that others added does not make a file good that has none. */
static void beside_others(void **state)
{
	struct fixture *f = *state;

	put_elf(f, segments, ARRAY_LEN(segments));
	assert_int_equal(rawcode_add_elf(&f->code, f->elf, &f->message), 0);
	put_elf(f, segments, 1);
	assert_int_equal(rawcode_add_elf(&f->code, f->elf, &f->message), -EINVAL);
	assert_int_equal(f->code.n, 2);
}

static void files(void **state)
{
	struct fixture *f = *state;

	tempdir_put_text(f->dir, "pages", "bytes");
	assert_int_equal(rawcode_add_file(&f->code, f->pages, 0x7000, &f->message), 0);
	assert_int_equal(f->code.n, 1);
	assert_code(f, 0, f->pages, 0, 5, 0x7000);
	rawcode_deinit(&f->code);
	tempdir_put_text(f->dir, "pages", "");
	assert_refused(f, rawcode_add_file(&f->code, f->pages, 0, &f->message), -EINVAL,
		       "/pages: is empty");
	assert_refused(f, rawcode_add_file(&f->code, f->none, 0, &f->message), -ENOENT,
		       "/none: cannot read: No such file or directory");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(elf_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(beside_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
