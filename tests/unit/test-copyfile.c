/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/copyfile.h"
#include "util/effort.h"

#define MIB ((off_t)1 << 20)

struct fixture {
	char dir[TEMPDIR_SIZE];
	int from, to;
};

static int open_file(const struct fixture *f, const char *name)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("copyfile", f->dir);
	f->from = open_file(f, "from");
	f->to = open_file(f, "to");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)close(f->from);
	(void)close(f->to);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static off_t taken(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (off_t)st.st_blocks * 512;
}

/* @size bytes, of which those at @data and the next three are not zero. */
static void make(int fd, off_t data, off_t size)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(fd, size), 0);
	if (data >= 0)
		assert_int_equal(pwrite(fd, "data", 4, data), 4);
}

static void assert_same_data(int a, int b, off_t data)
{
	char left[4] = "", right[4] = "";

	assert_int_equal(pread(a, left, 4, data), pread(b, right, 4, data));
	assert_memory_equal(left, right, 4);
}

static void assert_same(int a, int b, off_t data)
{
	assert_int_equal(lseek(a, 0, SEEK_END), lseek(b, 0, SEEK_END));
	assert_same_data(a, b, data);
}

static void holes_stay(void **state)
{
	static const struct {
		off_t data, size;
	} rows[] = {
		{ 0, 4 },  { 0, 100 * MIB },  { 50 * MIB, 100 * MIB }, { 100 * MIB - 4, 100 * MIB },
		{ -1, 0 }, { -1, 100 * MIB },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		make(f->from, rows[i].data, rows[i].size);
		assert_int_equal(ftruncate(f->to, 0), 0);
		assert_int_equal(lseek(f->to, 0, SEEK_SET), 0);
		assert_int_equal(copyfile_fd(f->from, f->to, NULL), 0);
		assert_same(f->from, f->to, rows[i].data >= 0 ? rows[i].data : 0);
		assert_true(taken(f->to) <= MIB);
	}
}

/* The size counts, holes or not. */
static void too_large(void **state)
{
	struct fixture *f = *state;

	make(f->from, 0, MIB);
	assert_int_equal(copyfile_fd(f->from, f->to, &(struct effort){ .size_max = MIB - 1 }),
			 -EFBIG);
	assert_int_equal(ftruncate(f->to, 0), 0);
	assert_int_equal(lseek(f->to, 0, SEEK_SET), 0);
	assert_int_equal(copyfile_fd(f->from, f->to, &(struct effort){ .size_max = MIB }), 0);
}

/* A file in /proc has no size before it is read, and is copied in another way. */
static void of_the_kernel(void **state)
{
	const atomic_bool asked = true;
	struct fixture *f = *state;
	const struct {
		struct effort effort;
		int expected;
	} rows[] = {
		{ { .size_max = UINT64_MAX }, 0 },
		{ { .size_max = 10 }, -EFBIG },
		{ { .size_max = UINT64_MAX, .cancel = &asked }, -ECANCELED },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const int version = open("/proc/version", O_RDONLY | O_CLOEXEC);

		assert_true(version >= 0);
		assert_int_equal(ftruncate(f->to, 0), 0);
		assert_int_equal(lseek(f->to, 0, SEEK_SET), 0);
		assert_int_equal(copyfile_fd(version, f->to, &rows[i].effort), rows[i].expected);
		if (rows[i].expected == 0) {
			assert_true(lseek(f->to, 0, SEEK_END) > 10);
			assert_same_data(version, f->to, 4);
		}
		assert_int_equal(close(version), 0);
	}
}

/* Data between holes, and no more of them in the copy than in the original. */
static void islands(void **state)
{
	static const off_t places[] = { 5 * MIB, 20 * MIB + 17, 60 * MIB };
	struct fixture *f = *state;

	make(f->from, -1, 100 * MIB);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		assert_int_equal(pwrite(f->from, "data", 4, places[i]), 4);
	assert_int_equal(copyfile_fd(f->from, f->to, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		assert_same(f->from, f->to, places[i]);
	assert_true(taken(f->to) <= MIB);
	/* Too large by what is behind the last hole, or by the hole at the end. */
	for (off_t max = 20 * MIB; max < 100 * MIB; max += 20 * MIB)
		assert_int_equal(
		    copyfile_fd(f->from, f->to, &(struct effort){ .size_max = (uint64_t)max }),
		    -EFBIG);
	assert_int_equal(copyfile_fd(f->from, f->to, &(struct effort){ .size_max = 100 * MIB - 1 }),
			 -EFBIG);
	assert_int_equal(copyfile_fd(f->from, f->to, &(struct effort){ .size_max = 100 * MIB }), 0);
}

static void cannot_be_copied(void **state)
{
	struct fixture *f = *state;
	char path[128];
	int to;

	(void)snprintf(path, sizeof(path), "%s/to", f->dir);
	to = open(path, O_RDONLY | O_CLOEXEC);
	for (off_t size = 4; size <= 100 * MIB; size += 100 * MIB - 4) {
		make(f->from, 0, size);
		assert_true(copyfile_fd(f->from, to, NULL) < 0);
		assert_true(copyfile_fd(to, to, NULL) <= 0);
		assert_true(copyfile_fd(-1, f->to, NULL) < 0);
	}
	(void)close(to);
}

static int copy(void *userdata)
{
	struct fixture *f = userdata;

	(void)syscall(SYS_ftruncate, f->to, 0);
	(void)syscall(SYS_lseek, f->to, 0, SEEK_SET);
	(void)syscall(SYS_lseek, f->from, 0, SEEK_SET);
	return copyfile_fd(f->from, f->to, NULL);
}

static void is_copied(void *userdata)
{
	const struct fixture *f = userdata;

	assert_same(f->from, f->to, 50 * MIB);
	assert_int_equal(lseek(f->to, 0, SEEK_END), 100 * MIB);
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;

	make(f->from, 50 * MIB, 100 * MIB);
	failing_each(copy, is_copied, f);
}

/* A copy is given up where it is. */
static void given_up(void **state)
{
	const atomic_bool asked = true;
	const struct {
		struct effort effort;
		int expected;
	} rows[] = {
		{ { .size_max = UINT64_MAX, .cancel = &asked }, -ECANCELED },
		{ { .size_max = UINT64_MAX, .until_ns = 1 }, -ETIMEDOUT },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (off_t size = MIB; size <= 100 * MIB; size += 99 * MIB) {
			make(f->from, 0, size);
			assert_int_equal(copyfile_fd(f->from, f->to, &rows[i].effort),
					 rows[i].expected);
		}
}

/* Of a file that grows: what it has had. */
static void first_bytes(void **state)
{
	const struct fixture *f = *state;
	const int from = open_file(f, "grows"), to = open_file(f, "first"),
		  unwritable = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char bytes[32] = {};

	assert_int_equal(pwrite(from, "JiTD and what follows", 21, 0), 21);
	assert_int_equal(ftruncate(from, 64 << 20), 0);
	assert_int_equal(copyfile_first(from, to, 32 << 20), 0);
	assert_int_equal(lseek(to, 0, SEEK_END), 32 << 20);
	assert_true(taken(to) < 1 << 20);
	assert_int_equal(pread(to, bytes, 21, 0), 21);
	assert_string_equal(bytes, "JiTD and what follows");

	/* It has become shorter. */
	assert_int_equal(ftruncate(from, 10), 0);
	assert_int_equal(copyfile_first(from, to, 32 << 20), 0);
	assert_int_equal(lseek(to, 0, SEEK_END), 10);

	assert_int_equal(copyfile_first(from, unwritable, 10), -EBADF);
	assert_int_equal(copyfile_first(-1, to, 10), -EBADF);
	(void)close(from);
	(void)close(to);
	(void)close(unwritable);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(holes_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_large, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_the_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(islands, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cannot_be_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
		cmocka_unit_test_setup_teardown(given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(first_bytes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
