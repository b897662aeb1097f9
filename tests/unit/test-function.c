/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions are found in this program where the dynamic linker has put them, and in no file that
 * has them not; and what a condition watches for follows the mappings.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/plugin/maps.h"
#include "tests/lib/emufree.h"
#include "util/function.h"

/* Not inlined, and in one of the symbol tables. */
__attribute__((__noinline__, __used__)) static int unmistakable_function(int n)
{
	return n + 1;
}

/* Return: the offset in its file of what is at @address, as the program headers in memory say. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *userdata)
{
	uint64_t *address = userdata;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || *address < start || *address - start >= p->p_filesz)
			continue;
		*address = p->p_offset + (*address - start);
		return 1;
	}
	return 0;
}

static uint64_t offset_of(const void *function)
{
	uint64_t address = (uintptr_t)function;

	assert_int_equal(dl_iterate_phdr(find_offset, &address), 1);
	return address;
}

static void found_in_itself(void **state)
{
	static const char *const names[] = { "absent", "unmistakable_function", "main" };
	_cleanup_(fd_closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct function found[4];

	(void)state;
	assert_int_equal(unmistakable_function(1), 2);
	assert_true(fd >= 0);
	assert_int_equal(function_find(fd, names, 3, found, 4), 2);
	for (int i = 0; i < 2; i++)
		if (found[i].name == 1)
			assert_int_equal(found[i].offset, offset_of(unmistakable_function));
		else
			assert_int_equal(found[i].name, 2);
	assert_int_equal(function_find(fd, names, 1, found, 4), 0);
	assert_int_equal(function_find(fd, names, 3, found, 1), 1);
}

static void found_in_a_library(void **state)
{
	static const char *const names[] = { "getpid" };
	_cleanup_(fd_closep) int fd = -1;
	struct function found[4];
	Dl_info info;

	(void)state;
	assert_int_not_equal(dladdr((void *)(uintptr_t)getpid, &info), 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(function_find(fd, names, 1, found, 4), 1);
	assert_int_equal(found[0].offset, offset_of(dlsym(RTLD_DEFAULT, "getpid")));
}

static void no_elf(void **state)
{
	static const char *const names[] = { "main" };
	_cleanup_(fd_closep) int fd = memfd_create("elf", MFD_CLOEXEC);
	uint8_t bytes[sizeof(Elf64_Ehdr)] = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 };
	struct function found[1];

	(void)state;
	assert_int_equal(function_find(fd, names, 1, found, 1), -EBADMSG);
	assert_int_equal(write(fd, bytes, 20), 20);
	assert_int_equal(function_find(fd, names, 1, found, 1), -EBADMSG);
	bytes[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(function_find(fd, names, 1, found, 1), -EBADMSG);
	bytes[EI_DATA] = ELFDATA2LSB;
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(function_find(fd, names, 1, found, 1), 0);
}

static void watched(void **state)
{
	const struct condition conditions[] = {
		{ .kind = CONDITION_SIGNAL, .number = 1 },
		{ .kind = CONDITION_ENTER, .function = (char[]){ "unmistakable_function" } },
		{ .kind = CONDITION_ENTER,
		  .function = (char[]){ "main" },
		  .object = (char[]){ "other" } },
	};
	const uint64_t at = offset_of(unmistakable_function), page = at & ~UINT64_C(4095);
	struct watch watch = { .conditions = conditions, .n_conditions = 3 };
	const struct watch_mapping mapping = {
		.path = "/proc/self/exe", .start = 0x10000, .end = 0x11000, .offset = page
	};

	(void)state;
	watch_map(&watch, &mapping);
	assert_int_equal(watch.places.n, 1);
	assert_int_equal(watch_at(&watch, 0x10000 + (at - page)), 2);
	assert_int_equal(watch_at(&watch, 0x10001 + (at - page)), 0);
	/* Mapped again, and elsewhere. */
	watch_map(&watch, &mapping);
	assert_int_equal(watch.places.n, 1);
	watch_map(&watch,
		  &(struct watch_mapping){
		      .path = "/proc/self/exe", .start = 0x20000, .end = 0x21000, .offset = page });
	assert_int_equal(watch_at(&watch, 0x20000 + (at - page)), 2);
	/* Another page of the file has it not, and what is no file takes its place. */
	watch_map(&watch, &(struct watch_mapping){ .path = "/proc/self/exe",
						   .start = 0x20000,
						   .end = 0x21000,
						   .offset = page + 4096 });
	assert_int_equal(watch_at(&watch, 0x20000 + (at - page)), 0);
	watch_map(&watch, &(struct watch_mapping){ .start = 0x10000, .end = 0x11000 });
	assert_int_equal(watch.places.n, 0);
	watch_deinit(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_in_itself),
		cmocka_unit_test(found_in_a_library),
		cmocka_unit_test(no_elf),
		cmocka_unit_test(watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
