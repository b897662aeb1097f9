/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Zip: what stands around the members, read by unzip, also where numbers need zip64. (Debian's
 * minizip 1.1 cannot read members behind 4 GiB.)
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decoder/util/zip.h"
#include "tests/lib/tempdir.h"

/* "abc", stored, and its CRC. */
static const uint8_t packed[] = { 1, 3, 0, 0xfc, 0xff, 'a', 'b', 'c' };
#define CRC 0x352441c2

static void put(int fd, const void *bytes, size_t size, uint64_t offset)
{
	assert_int_equal(pwrite(fd, bytes, size, (off_t)offset), size);
}

/* Write an archive of @n members that are @distance bytes apart. Return: where it ends. */
static uint64_t write_archive(const char *path, size_t n, uint64_t distance)
{
	_cleanup_(freep) struct zip_member *members = calloc(n ? n : 1, sizeof(*members));
	_cleanup_(freep) uint8_t *directory = NULL;
	_cleanup_(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint8_t header[ZIP_HEADER_MAX];
	size_t size;

	assert_non_null(members);
	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++) {
		members[i] = (struct zip_member){
			.offset = i * distance, .packed_size = sizeof(packed), .size = 3, .crc = CRC
		};
		(void)snprintf(members[i].name, sizeof(members[i].name), "chunk.%08zu", i);
		size = zip_put_header(&members[i], header);
		assert_int_equal(size, 44);
		put(fd, header, size, members[i].offset);
		put(fd, packed, sizeof(packed), members[i].offset + size);
	}
	assert_int_equal(zip_directory(members, n, n * distance, &directory, &size), 0);
	put(fd, directory, size, n * distance);
	return n * distance + size;
}

/* Run unzip, which must print the names of @n members, or else their contents. */
static void check(const char *path, size_t n, bool is_names)
{
	char command[TEMPDIR_SIZE + 32], expected[32], got[32];
	FILE *f;

	(void)snprintf(command, sizeof(command), "unzip %s %s", is_names ? "-Z1" : "-p", path);
	f = popen(command, "re");
	assert_non_null(f);
	for (size_t i = 0; i < n; i++) {
		const int size = is_names ? snprintf(expected, sizeof(expected), "chunk.%08zu\n", i)
					  : snprintf(expected, sizeof(expected), "abc");

		assert_int_equal(fread(got, 1, (size_t)size, f), size);
		assert_memory_equal(got, expected, (size_t)size);
	}
	assert_int_equal(fgetc(f), EOF);
	assert_int_equal(pclose(f), 0);
}

/* The file is a sparse one where its members are far apart. */
static void archives(void **state)
{
	static const struct {
		const char *name;
		size_t n;
		uint64_t distance;
	} rows[] = {
		{ "one", 1, 52 },
		{ "three", 3, 52 },
		{ "as many as fit without zip64", 65534, 52 },
		{ "one more", 65535, 52 },
		{ "beyond 4 GiB", 3, UINT64_C(3) << 30 },
		{ "the directory at the limit", 1, UINT64_C(0xffffffff) },
		{ "a member at the limit", 2, UINT64_C(0xffffffff) },
		{ "below the limit", 2, UINT64_C(0xfffffffe) / 2 },
	};
	char dir[TEMPDIR_SIZE], path[TEMPDIR_SIZE + 8];

	(void)state;
	tempdir_make("zip", dir);
	if (system("unzip -v >/dev/null 2>&1") != 0) {
		print_message("unzip is not installed\n");
		tempdir_remove(dir);
		skip();
	}
	(void)snprintf(path, sizeof(path), "%s/a.zip", dir);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		(void)write_archive(path, rows[i].n, rows[i].distance);
		check(path, rows[i].n, false);
		check(path, rows[i].n, true);
	}
	tempdir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(archives) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
