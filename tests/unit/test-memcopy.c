/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory of a process, here a file that stands for it: what is passed on, and how much of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/proc/memcopy.h"
#include "tests/lib/failing.h"

#define PAGE  UINT64_C(4096)
#define START UINT64_C(0x10000)
#define MIB   (UINT64_C(1) << 20)

struct copied {
	char text[256]; /* FIRST+N of each piece, in pages */
	unsigned n_left;
	int error; /* when there are none left */
};

/* The first byte of a page, which is not 0. */
static uint8_t number_of(uint64_t page)
{
	return (uint8_t)(page % 255 + 1);
}

static int put(void *userdata, uint64_t address, const void *bytes, size_t size)
{
	struct copied *copied = userdata;
	const size_t n = strlen(copied->text);

	if (copied->n_left-- == 0)
		return copied->error;
	assert_int_equal(address % PAGE, 0);
	assert_int_equal(size % PAGE, 0);
	for (size_t i = 0; i < size / PAGE; i++)
		assert_int_equal(((const uint8_t *)bytes)[i * PAGE],
				 number_of((address - START) / PAGE + i));
	(void)snprintf(copied->text + n, sizeof(copied->text) - n, "%s%u+%u", n ? " " : "",
		       (unsigned)((address - START) / PAGE), (unsigned)(size / PAGE));
	return 0;
}

/* The pages of which the string has no '-', from START on. */
static int make_memory(const char *pages)
{
	const int fd = memfd_create("memory", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; pages[i]; i++) {
		const uint8_t number = number_of(i);

		if (pages[i] != '-')
			assert_int_equal(pwrite(fd, &number, 1, (off_t)(START + i * PAGE)), 1);
	}
	assert_int_equal(ftruncate(fd, (off_t)(START + strlen(pages) * PAGE)), 0);
	return fd;
}

static void pages_with_code(void **state)
{
	static const struct {
		const char *pages;
		uint64_t size, n_max;
		const char *pieces;
		int64_t n;
	} rows[] = {
		{ "xxxx", 4, 4, "0+4", 4 },
		{ "xxxx", 4, 100, "0+4", 4 },
		{ "xxxx", 4, 3, "0+3", 3 },
		{ "xxxx", 4, 0, "", 0 },
		{ "xxxx", 2, 4, "0+2", 2 },
		{ "xxxx", 0, 4, "", 0 },
		{ "-xx-x--", 7, 7, "1+2 4+1", 3 },
		{ "-xx-x--", 7, 2, "1+2", 2 },
		{ "----", 4, 4, "", 0 },
		{ "xx", 9, 9, "0+2", 2 }, /* what is behind is not mapped */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct copied copied = { .n_left = UINT32_MAX };
		const int fd = make_memory(rows[i].pages);

		assert_int_equal(memcopy_read(fd, START, rows[i].size * PAGE + 100,
					      rows[i].n_max * PAGE, put, &copied),
				 rows[i].n * (int64_t)PAGE);
		assert_string_equal(copied.text, rows[i].pieces);
		(void)close(fd);
	}
}

/* Long memory is passed on a MiB at a time. */
static void large_pieces(void **state)
{
	static char pages[2 * 256 + 2];
	struct copied copied = { .n_left = UINT32_MAX };
	int fd;

	(void)state;
	memset(pages, 'x', sizeof(pages) - 1);
	fd = make_memory(pages);
	assert_int_equal(memcopy_read(fd, START, 3 * MIB, UINT64_MAX / 2, put, &copied),
			 (sizeof(pages) - 1) * PAGE);
	assert_string_equal(copied.text, "0+256 256+256 512+1");
	(void)close(fd);
}

/* What does not take a piece ends it, also with the last one. */
static void not_taken(void **state)
{
	const int fd = make_memory("x-x");

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		struct copied copied = { .n_left = n, .error = -ENOSPC };

		assert_int_equal(memcopy_read(fd, START, 3 * PAGE, 3 * PAGE, put, &copied),
				 -ENOSPC);
		assert_string_equal(copied.text, n == 0 ? "" : "0+1");
	}
	(void)close(fd);
}

static int fd_of_failing;

static int copy(void *userdata)
{
	struct copied *copied = userdata;
	int64_t n;

	*copied = (struct copied){ .n_left = UINT32_MAX };
	n = memcopy_read(fd_of_failing, START, 3 * PAGE, 3 * PAGE, put, copied);
	return n < 0 ? (int)n : 0;
}

/* A page that cannot be read is left out. */
static void is_copied(void *userdata)
{
	const struct copied *copied = userdata;

	if (!failing_name())
		assert_string_equal(copied->text, "0+1 2+1");
	else
		assert_true(strcmp(copied->text, "0+1") == 0 || strcmp(copied->text, "2+1") == 0 ||
			    strcmp(copied->text, "0+1 2+1") == 0);
}

static void calls_that_fail(void **state)
{
	struct copied copied;

	(void)state;
	fd_of_failing = make_memory("x-x");
	failing_each(copy, is_copied, &copied);
	(void)close(fd_of_failing);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_with_code),
		cmocka_unit_test(large_pieces),
		cmocka_unit_test(not_taken),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
