/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums: however many threads hash, a snapshot is refused if any of its files is another. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/file/reading.h"
#include "decoder/file/sums.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/mapfile.h"
#include "util/sha256.h"
#include "util/threads.h"

#define N_FILES 12

static const size_t counts[] = { 0, 1, 2, 3, 8 };

/* A directory with its sums, and a call of sums_check(). */
struct fixture {
	char dir[TEMPDIR_SIZE];
	int dir_fd;
	char names[N_FILES][16];
	size_t sizes[N_FILES];
	struct mapfile sums;
	struct reading reading;
	uint64_t done, total; /* as reported last */
	uint64_t cancel_at;   /* bytes; 0: never */
	char *message;
};

static void hash(const struct fixture *f, const char *name, FILE *sums)
{
	char hex[SHA256_HEX_SIZE];
	uint64_t size;
	int fd = openat(f->dir_fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sha256_fd(fd, NULL, NULL, hex, &size), 0);
	(void)close(fd);
	fprintf(sums, "%s  %s\n", hex, name);
}

/* File @i has more than one step of progress, one step exactly, or less; one is empty. */
static size_t size_of(size_t i)
{
	return i == 3 ? 0 : i % 4 == 1 ? (3 << 20) + 7 * i : i % 4 == 2 ? 1 << 20 : 1000 * i + 1;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char *bytes = malloc(4 << 20), *text = NULL;
	size_t size;
	FILE *sums = open_memstream(&text, &size);

	assert_true(f && bytes && sums);
	tempdir_make("sums", f->dir);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < N_FILES; i++) {
		snprintf(f->names[i], sizeof(f->names[i]), "f%zu", i);
		if (i < 2)
			strcpy(f->names[i], i == 0 ? "data" : "manifest");
		f->sizes[i] = size_of(i);
		memset(bytes, (int)i, f->sizes[i]);
		tempdir_put(f->dir, f->names[i], bytes, f->sizes[i]);
		hash(f, f->names[i], sums);
	}
	(void)fclose(sums);
	tempdir_put_text(f->dir, "SHA256SUMS", text);
	assert_int_equal(mapfile_read(&f->sums, f->dir_fd, "SHA256SUMS"), 0);
	free(text);
	free(bytes);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	mapfile_deinit(&f->sums);
	(void)close(f->dir_fd);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static int note(void *userdata, uint64_t done, uint64_t total)
{
	struct fixture *f = userdata;

	assert_true(done >= f->done);
	f->done = done;
	f->total = total;
	return f->cancel_at && done >= f->cancel_at;
}

/* @n_threads: 0: none are passed. Return: as sums_check(). */
static int check(struct fixture *f, size_t n_threads)
{
	int r = 0;

	f->message = NULL;
	f->done = f->total = 0;
	f->reading = (struct reading){ .progress = { .report = note, .userdata = f } };
	if (n_threads > 0)
		r = ptd_threads_new(n_threads, &f->reading.threads);
	if (r == 0)
		r = sums_check(f->dir_fd, "DIR", &f->sums, &f->reading, &f->message);
	ptd_threads_free(f->reading.threads);
	return r;
}

static void as_written(void **state)
{
	struct fixture *f = *state;
	uint64_t total = 0;

	for (size_t i = 0; i < N_FILES; i++)
		total += f->sizes[i];
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		assert_int_equal(check(f, counts[i]), 0);
		assert_null(f->message);
		/* All is counted; the last bytes may be too few for a report. */
		assert_int_equal(f->total, total);
		assert_int_equal(f->reading.progress.done, total);
	}
}

/* Each file in turn has another byte, or one more, or is gone. */
static void another_file(void **state)
{
	struct fixture *f = *state;
	char *bytes = calloc(1, 4 << 20);

	assert_non_null(bytes);
	for (size_t i = 0; i < N_FILES; i++) {
		for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
			const size_t size = f->sizes[i], more = k % 2 || size == 0;

			memset(bytes, (int)i, size + 1);
			if (!more)
				bytes[size / 2]++;
			tempdir_put(f->dir, f->names[i], bytes, size + more);
			assert_int_equal(check(f, counts[k]), -EKEYREJECTED);
			assert_non_null(strstr(f->message, "DIR: "));
			assert_non_null(strstr(f->message, f->names[i]));
			assert_non_null(strstr(f->message, " is not the file that was written"));
			free(f->message);

			assert_int_equal(unlinkat(f->dir_fd, f->names[i], 0), 0);
			assert_int_equal(check(f, counts[k]), -EKEYREJECTED);
			assert_non_null(strstr(f->message, f->names[i]));
			assert_non_null(strstr(f->message, " is missing"));
			free(f->message);
			memset(bytes, (int)i, size + 1);
			tempdir_put(f->dir, f->names[i], bytes, size);
		}
	}
	free(bytes);
}

/* A caller who does not want the rest gets -ECANCELED, whatever else is wrong. */
static void canceled(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		f->cancel_at = 1;
		assert_int_equal(check(f, counts[i]), -ECANCELED);
		assert_non_null(f->message);
		free(f->message);
	}
	f->cancel_at = 0;
}

static int check_by_two(void *userdata)
{
	struct fixture *f = userdata;
	const int r = check(f, 2);

	assert_true(r == 0 || f->message || failing_is_memory() || !f->reading.threads);
	if (r < 0)
		free(f->message);
	return r;
}

static void nothing_to_free(void *userdata)
{
	const struct fixture *f = userdata;

	assert_null(f->message);
}

static void nothing_left(void **state)
{
	failing_each(check_by_two, nothing_to_free, *state);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_written),
		cmocka_unit_test(another_file),
		cmocka_unit_test(canceled),
		cmocka_unit_test(nothing_left),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
