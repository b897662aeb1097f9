/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory of a process, here a file that stands for it: what is passed on, and how much of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
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

/* --- what a process can execute -------------------------------------------------------------- */

/* A mapping of ours, whose pages are 'x': executable, 'w': data, '-': not to be touched. */
static uint8_t *map_pages(const char *pages)
{
	const size_t n = strlen(pages);
	uint8_t *memory =
	    mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	for (size_t i = 0; i < n; i++) {
		memory[i * PAGE] = number_of(i);
		assert_int_equal(mprotect(memory + i * PAGE, PAGE,
					  pages[i] == 'x'   ? PROT_READ | PROT_EXEC
					  : pages[i] == 'w' ? PROT_READ | PROT_WRITE
							    : PROT_NONE),
				 0);
	}
	return memory;
}

struct taken {
	const uint8_t *memory;
	char pages[64]; /* "x" for each that was passed on, else "." */
};

static int take(void *userdata, uint64_t address, const void *bytes, size_t size)
{
	struct taken *t = userdata;
	const size_t first = (address - (uintptr_t)t->memory) / PAGE;

	for (size_t i = 0; i < size / PAGE; i++) {
		assert_int_equal(((const uint8_t *)bytes)[i * PAGE], number_of(first + i));
		t->pages[first + i] = 'x';
	}
	return 0;
}

static void only_executable_pages(void **state)
{
	static const struct {
		const char *pages;
		size_t first, n, n_max;
		const char *taken;
	} rows[] = {
		{ "xxxx", 0, 4, 9, "xxxx" },     { "wwww", 0, 4, 9, "...." },
		{ "wxwx-x", 0, 6, 9, ".x.x.x" }, { "wxwx-x", 0, 6, 2, ".x.x.." },
		{ "xxxxxx", 2, 3, 9, "..xxx." }, { "xxwwxx", 1, 4, 9, ".x..x." },
		{ "-xx", 0, 1, 9, "..." },
	};
	const int self = open("/proc/self", O_PATH | O_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t n = strlen(rows[i].pages);
		uint8_t *memory = map_pages(rows[i].pages);
		struct taken taken = { .memory = memory };
		int64_t r;

		print_message("  %s\n", rows[i].pages);
		memset(taken.pages, '.', n);
		r = memcopy_read_executable(self, (uintptr_t)memory + rows[i].first * PAGE,
					    rows[i].n * PAGE, rows[i].n_max * PAGE, take, &taken);
		assert_string_equal(taken.pages, rows[i].taken);
		for (const char *c = taken.pages; *c; c++)
			r -= *c == 'x' ? (int64_t)PAGE : 0;
		assert_int_equal(r, 0);
		assert_int_equal(munmap(memory, n * PAGE), 0);
	}
	assert_int_equal(memcopy_read_executable(self, PAGE, UINT64_MAX, PAGE, take, NULL),
			 -EINVAL);
	assert_int_equal(memcopy_read_executable(-1, PAGE, PAGE, PAGE, take, NULL), -EBADF);
	(void)close(self);
}

/* A JIT compiler that is writing, and finishes while memcopy.c waits for the n-th time. */
static struct {
	uint8_t *page;
	unsigned n_waits, finishes_at;
	uint64_t waited_ns;
} jit;

/* Instead of the C library's. */
int nanosleep(const struct timespec *duration, struct timespec *left)
{
	(void)left;
	jit.waited_ns += (uint64_t)duration->tv_sec * 1000000000 + (uint64_t)duration->tv_nsec;
	if (++jit.n_waits == jit.finishes_at)
		assert_int_equal(mprotect(jit.page, PAGE, PROT_READ | PROT_EXEC), 0);
	return 0;
}

/* Of a page that stays data nothing is copied; and the time that is spent on it is short. */
static void code_that_is_being_written(void **state)
{
	static const struct {
		const char *page;
		unsigned finishes_at, n_waits;
		const char *taken;
	} rows[] = {
		{ "x", 0, 0, "x" }, { "-", 0, 0, "." }, { "w", 1, 1, "x" },
		{ "w", 2, 2, "x" }, { "w", 3, 2, "." },
	};
	const int self = open("/proc/self", O_PATH | O_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct taken taken = { .pages = "." };
		int64_t n;

		jit.page = map_pages(rows[i].page);
		jit.finishes_at = rows[i].finishes_at;
		jit.n_waits = 0;
		jit.waited_ns = 0;
		taken.memory = jit.page;
		n = memcopy_read_executable(self, (uintptr_t)jit.page, PAGE, PAGE, take, &taken);
		assert_int_equal(n, rows[i].taken[0] == 'x' ? (int64_t)PAGE : 0);
		assert_string_equal(taken.pages, rows[i].taken);
		assert_int_equal(jit.n_waits, rows[i].n_waits);
		assert_true(jit.waited_ns <= 10000000);
		assert_int_equal(munmap(jit.page, PAGE), 0);
	}
	(void)close(self);
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
		cmocka_unit_test(only_executable_pages),
		cmocka_unit_test(code_that_is_being_written),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
