/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Filebytes: files that stay as they are, and files that are cut off, written to, replaced or
 * removed between two reads; by one thread, and by several at once. Dataspan: files with holes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "decoder/util/filebytes.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/dataspan.h"

#define SIZE      200001u
#define N_THREADS 4

struct fixture {
	char dir[TEMPDIR_SIZE];
	char path[TEMPDIR_SIZE + 16];
	uint8_t bytes[SIZE];
	struct fileset set;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	for (size_t i = 0; i < SIZE; i++)
		f->bytes[i] = (uint8_t)(i * 7 + i / 256);
	tempdir_make("filebytes", f->dir);
	(void)snprintf(f->path, sizeof(f->path), "%s/file", f->dir);
	tempdir_put(f->dir, "file", f->bytes, SIZE);
	fileset_init(&f->set);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fileset_deinit(&f->set);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static struct filebytes *open_file(struct fixture *f, const char *path)
{
	struct filebytes *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(filebytes_new(&f->set, path, &fd, false, &file), 0);
	assert_int_equal(fd, -1);
	return file;
}

static void expect(const struct fixture *f, struct filebytes *file, uint64_t offset, uint64_t size)
{
	const uint8_t *p = filebytes_get(file, offset, size);

	assert_non_null(p);
	assert_memory_equal(p, f->bytes + offset, size);
}

/* --- files that stay as they are -------------------------------------------------------------- */

static void gives_bytes(void **state)
{
	struct fixture *f = *state;
	struct filebytes *file = open_file(f, f->path), *other;

	assert_int_equal(filebytes_size(file), SIZE);
	expect(f, file, 100000, 1);
	expect(f, file, SIZE - 1, 1);
	expect(f, file, 0, 16385);
	expect(f, file, 5, SIZE - 5);
	assert_ptr_equal(filebytes_get(file, 7, 1), filebytes_get(file, 0, SIZE) + 7);
	assert_non_null(filebytes_get(file, SIZE, 0));

	assert_null(filebytes_get(file, SIZE, 1));
	assert_null(filebytes_get(file, SIZE + 1, 0));
	assert_null(filebytes_get(file, 0, SIZE + 1));
	assert_null(filebytes_get(file, 1, UINT64_MAX));
	assert_null(filebytes_get(file, UINT64_MAX, 2));

	other = filebytes_ref(file);
	assert_null(filebytes_unref(file));
	expect(f, other, 0, SIZE);
	assert_null(filebytes_unref(other));
	assert_null(fileset_failure(&f->set));
}

static void gives_bytes_in_memory(void **state)
{
	struct fixture *f = *state;
	struct filebytes *file = NULL;

	assert_int_equal(filebytes_new_in_memory(f->bytes, SIZE, &file), 0);
	assert_ptr_equal(filebytes_get(file, 1, SIZE - 1), f->bytes + 1);
	assert_null(filebytes_get(file, 1, SIZE));
	assert_int_equal(filebytes_read_all(file), 0);
	assert_null(filebytes_unref(file));
	assert_int_equal(filebytes_new_in_memory(NULL, 0, &file), 0);
	assert_null(filebytes_get(file, 0, 1));
	assert_null(filebytes_unref(file));
}

/* A file of 64 GiB with a few bytes at its end takes no more than these. */
static void reads_what_is_asked_for(void **state)
{
	const uint64_t size = UINT64_C(1) << 36;
	struct fixture *f = *state;
	struct filebytes *file;
	uint8_t resident[4];
	const uint8_t *p;
	int fd;

	fd = open(f->path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pwrite(fd, "end", 3, (off_t)size - 3), 3);
	(void)close(fd);

	file = open_file(f, f->path);
	assert_memory_equal(filebytes_get(file, size - 3, 3), "end", 3);
	expect(f, file, 0, 1);
	p = filebytes_get(file, 0, 1);
	assert_int_equal(mincore((void *)(uintptr_t)(p + 65536), 4096 * 4, resident), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(resident[i] & 1, 0);
	/* Its hole is not written to memory. */
	assert_int_equal(filebytes_read_all(file), 0);
	assert_int_equal(p[size / 2], 0);
	assert_int_equal(mincore((void *)(uintptr_t)(p + size / 4), 4096 * 4, resident), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(resident[i] & 1, 0);
	(void)filebytes_unref(file);
}

static void refuses(void **state)
{
	static const struct {
		const char *path;
		int r;
	} rows[] = { { "/", -EISDIR }, { "/dev/null", -EINVAL } };
	struct fixture *f = *state;
	struct filebytes *file = NULL;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(fd_closep) int fd = open(rows[i].path, O_RDONLY | O_CLOEXEC);

		assert_int_equal(filebytes_new(&f->set, rows[i].path, &fd, false, &file),
				 rows[i].r);
		assert_null(file);
		assert_true(fd >= 0);
	}
	tempdir_put(f->dir, "file", "", 0);
	file = open_file(f, f->path);
	assert_int_equal(filebytes_size(file), 0);
	assert_null(filebytes_get(file, 0, 1));
	assert_int_equal(filebytes_read_all(file), 0);
	(void)filebytes_unref(file);
	assert_null(fileset_failure(&f->set));
}

/* Many more files than may be open at once, read in turn, twice. */
static void opens_again(void **state)
{
	enum { N = FILESET_OPEN_MAX + 20 };
	struct fixture *f = *state;
	struct filebytes *files[N];
	char name[16], path[TEMPDIR_SIZE + 16];

	for (size_t i = 0; i < N; i++) {
		(void)snprintf(name, sizeof(name), "%zu", i);
		(void)snprintf(path, sizeof(path), "%s/%zu", f->dir, i);
		tempdir_put(f->dir, name, f->bytes, SIZE - i);
		files[i] = open_file(f, path);
	}
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < N; i++)
			expect(f, files[i], 50000 * (round + 1) + i, 30000);
	for (size_t i = 0; i < N; i++)
		assert_null(filebytes_unref(files[i]));
	assert_null(fileset_failure(&f->set));
	for (size_t i = 0; i < FILESET_OPEN_MAX; i++)
		assert_null(f->set.open[i]);
}

/* --- files that change ------------------------------------------------------------------------ */

static void set_time(const char *path, time_t seconds)
{
	const struct timespec times[] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void cut(const struct fixture *f)
{
	assert_int_equal(truncate(f->path, 20000), 0);
}

static void write_to(const struct fixture *f)
{
	const int fd = open(f->path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, "!", 1, 150000), 1);
	(void)close(fd);
}

/* As cp(1) does, with more bytes than there were. */
static void write_anew(const struct fixture *f)
{
	static uint8_t more[SIZE + 1];

	tempdir_put(f->dir, "file", more, sizeof(more));
}

static void replace(const struct fixture *f)
{
	char path[sizeof(f->path)];

	tempdir_put(f->dir, "new", f->bytes, SIZE);
	(void)snprintf(path, sizeof(path), "%s/new", f->dir);
	assert_int_equal(rename(path, f->path), 0);
}

static void remove_it(const struct fixture *f)
{
	assert_int_equal(unlink(f->path), 0);
}

/* What was read stays; nothing else is given, and the set says why. */
static void changed_files(void **state)
{
	static const struct {
		void (*change)(const struct fixture *f);
		bool is_closed;      /* in between */
		const char *failure; /* behind the path; NULL: none */
	} rows[] = {
		{ cut, false,
		  ": was cut off at byte 20000 while it was read: it had 200001 bytes" },
		{ cut, true, ": was cut off at byte 20000 while it was read: it had 200001 bytes" },
		{ write_to, false, ": was written to while it was read" },
		{ write_to, true, ": was written to while it was read" },
		{ write_anew, false, ": was written to while it was read" },
		{ replace, false, NULL }, /* the old file is still open */
		{ replace, true, ": was replaced while it was read" },
		{ remove_it, false, NULL },
		{ remove_it, true, ": cannot be opened again: No such file or directory" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct filebytes *file, *other;
		const char *failure;

		print_message("  %zu\n", i);
		tempdir_put(f->dir, "file", f->bytes, SIZE);
		set_time(f->path, 1000);
		file = open_file(f, f->path);
		expect(f, file, 100000, 10);
		other = open_file(f, f->path);
		for (size_t k = 0; rows[i].is_closed && k < FILESET_OPEN_MAX; k++)
			(void)filebytes_unref(open_file(f, "/proc/self/exe"));
		rows[i].change(f);

		expect(f, file, 100000, 10);
		assert_null(fileset_failure(&f->set));
		if (!rows[i].failure) {
			expect(f, file, 0, SIZE);
		} else {
			assert_null(filebytes_get(file, 0, SIZE));
			assert_null(filebytes_get(file, 150000, 1));
			failure = fileset_failure(&f->set);
			assert_non_null(failure);
			assert_memory_equal(failure, f->path, strlen(f->path));
			assert_string_equal(failure + strlen(f->path), rows[i].failure);
			/* The first one is kept. */
			assert_null(filebytes_get(other, 150000, 1));
			assert_ptr_equal(fileset_failure(&f->set), failure);
			expect(f, file, 100000, 10);
		}
		(void)filebytes_unref(file);
		(void)filebytes_unref(other);
		fileset_deinit(&f->set);
		fileset_init(&f->set);
		(void)unlink(f->path);
	}
}

/* A file that another process appends to, or cuts off, before all of it is read. */
static void reads_all(void **state)
{
	struct fixture *f = *state;
	struct filebytes *file = open_file(f, f->path);
	const int fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, "more", 4), 4);
	(void)close(fd);
	assert_int_equal(filebytes_read_all(file), 0);
	assert_int_equal(filebytes_read_all(file), 0);
	cut(f);
	expect(f, file, 0, SIZE);
	(void)filebytes_unref(file);

	tempdir_put(f->dir, "file", f->bytes, SIZE);
	file = open_file(f, f->path);
	cut(f);
	assert_int_equal(filebytes_read_all(file), -ESTALE);
	(void)filebytes_unref(file);
	assert_null(fileset_failure(&f->set));
}

/* --- threads ---------------------------------------------------------------------------------- */

struct reader {
	const struct fixture *f;
	struct filebytes *file;
	size_t n_wrong;
};

static void *read_backwards(void *userdata)
{
	struct reader *r = userdata;

	for (size_t at = SIZE - 100; at >= 1000; at -= 997) {
		const uint8_t *p = filebytes_get(r->file, at, 100);

		r->n_wrong += !p || memcmp(p, r->f->bytes + at, 100) != 0;
	}
	return NULL;
}

static void several_threads(void **state)
{
	struct fixture *f = *state;
	struct reader readers[N_THREADS];
	pthread_t threads[N_THREADS];
	struct filebytes *file = open_file(f, f->path);

	for (size_t i = 0; i < N_THREADS; i++) {
		readers[i] = (struct reader){ .f = f, .file = file };
		assert_int_equal(pthread_create(&threads[i], NULL, read_backwards, &readers[i]), 0);
	}
	for (size_t i = 0; i < N_THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(readers[i].n_wrong, 0);
	}
	(void)filebytes_unref(file);
}

/* --- failures --------------------------------------------------------------------------------- */

/* What cannot be read is an error, or a failure of the set: never bytes that are not the file's. */
static int read_it(void *userdata)
{
	struct fixture *f = userdata;
	struct filebytes *file = NULL;
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	const uint8_t *p;
	int r;

	r = filebytes_new(&f->set, f->path, &fd, false, &file);
	if (r == 0) {
		p = filebytes_get(file, 60000, 60000);
		if (p)
			assert_memory_equal(p, f->bytes + 60000, 60000);
		else
			assert_non_null(fileset_failure(&f->set));
		r = p ? 0 : -EIO;
	}
	(void)filebytes_unref(file);
	(void)fd_close(fd);
	fileset_deinit(&f->set);
	fileset_init(&f->set);
	return r;
}

static void check_nothing(void *userdata)
{
	(void)userdata;
}

static void each_call_fails(void **state)
{
	failing_each(read_it, check_nothing, *state);
}

/* --- data between holes ----------------------------------------------------------------------- */

static void finds_data(void **state)
{
	static const struct dataspan data[] = { { 0, 4096 }, { 1 << 20, (1 << 20) + 4096 } };
	struct fixture *f = *state;
	struct dataspan span = {};
	uint64_t at = 0;
	const int fd = open(f->path, O_RDWR | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(dataspan_next(fd, 0, UINT64_MAX, &span), 0);
	for (size_t i = 0; i < ARRAY_LEN(data); i++)
		assert_int_equal(pwrite(fd, f->bytes, 4096, (off_t)data[i].start), 4096);
	assert_int_equal(ftruncate(fd, 4 << 20), 0);

	for (size_t i = 0; i < ARRAY_LEN(data); i++) {
		assert_int_equal(dataspan_next(fd, at, UINT64_MAX, &span), 1);
		if (span.end == 4 << 20) {
			print_message("  no holes in /tmp\n");
			(void)close(fd);
			return;
		}
		assert_true(span.start <= data[i].start && span.end >= data[i].end);
		at = span.end;
	}
	assert_int_equal(dataspan_next(fd, at, UINT64_MAX, &span), 0);
	assert_int_equal(dataspan_next(fd, 100, 200, &span), 1);
	assert_true(span.start == 100 && span.end == 200);
	assert_int_equal(dataspan_next(fd, 200, 200, &span), 0);
	assert_int_equal(dataspan_next(fd, at, 1 << 20, &span), 0);
	assert_int_equal(dataspan_next(fd, UINT64_MAX - 1, UINT64_MAX, &span), 0);
	(void)close(fd);
	assert_int_equal(dataspan_next(-1, 0, 1, &span), -EBADF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gives_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(gives_bytes_in_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_what_is_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(opens_again, setup, teardown),
		cmocka_unit_test_setup_teardown(changed_files, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_all, setup, teardown),
		cmocka_unit_test_setup_teardown(several_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(each_call_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_data, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
