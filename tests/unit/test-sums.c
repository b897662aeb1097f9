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
#include "decoder/util/threads.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/mapfile.h"
#include "util/pieces.h"
#include "util/sha256.h"

#define N_FILES 12
#define N_DATA  ((4 << 20) + 7) /* bytes of the data file, which has five pieces */

static const size_t counts[] = { 0, 1, 2, 3, 8 };

/* A directory with its sums, and a call of sums_check(). */
struct fixture {
	char dir[TEMPDIR_SIZE];
	int dir_fd;
	char names[N_FILES][16];
	size_t sizes[N_FILES];
	char *bytes[N_FILES];
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
	return i == 0       ? N_DATA
	       : i == 3     ? 0
	       : i % 4 == 1 ? (3 << 20) + 7 * i
	       : i % 4 == 2 ? 1 << 20
			    : 1000 * i + 1;
}

/* Write file @i as it was. */
static void put(const struct fixture *f, size_t i)
{
	tempdir_put(f->dir, f->names[i], f->bytes[i], f->sizes[i]);
}

/* File @i becomes the pieces of the data file. */
static void make_pieces(struct fixture *f, size_t i)
{
	FILE *lines = open_memstream(&f->bytes[i], &f->sizes[i]);
	const int fd = openat(f->dir_fd, "data", O_RDONLY | O_CLOEXEC);
	char hex[SHA256_HEX_SIZE];
	struct pieces *pieces;

	assert_true(lines && fd >= 0);
	strcpy(f->names[i], "pieces");
	assert_int_equal(pieces_of_file(fd, NULL, hex, &pieces), 0);
	pieces_print(pieces, lines);
	pieces_free(pieces);
	assert_int_equal(fclose(lines), 0);
	(void)close(fd);
}

static void make_bytes(struct fixture *f, size_t i)
{
	snprintf(f->names[i], sizeof(f->names[i]), "f%zu", i);
	if (i < 2)
		strcpy(f->names[i], i == 0 ? "data" : "manifest");
	f->sizes[i] = size_of(i);
	f->bytes[i] = malloc(f->sizes[i] + 1);
	assert_non_null(f->bytes[i]);
	memset(f->bytes[i], (int)i, f->sizes[i]);
}

static int make(void **state, bool has_pieces)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char *text = NULL;
	size_t size;
	FILE *sums = open_memstream(&text, &size);

	assert_true(f && sums);
	tempdir_make("sums", f->dir);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < N_FILES; i++) {
		if (has_pieces && i == 4)
			make_pieces(f, i);
		else
			make_bytes(f, i);
		put(f, i);
		hash(f, f->names[i], sums);
	}
	(void)fclose(sums);
	tempdir_put_text(f->dir, "SHA256SUMS", text);
	assert_int_equal(mapfile_read(&f->sums, f->dir_fd, "SHA256SUMS"), 0);
	free(text);
	*state = f;
	return 0;
}

static int without_pieces(void **state)
{
	return make(state, false);
}

static int with_pieces(void **state)
{
	return make(state, true);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	mapfile_deinit(&f->sums);
	(void)close(f->dir_fd);
	for (size_t i = 0; i < N_FILES; i++)
		free(f->bytes[i]);
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

static void expect_refusal(struct fixture *f, size_t n_threads, const char *name, const char *why)
{
	assert_int_equal(check(f, n_threads), -EKEYREJECTED);
	assert_memory_equal(f->message, "DIR: ", 5);
	assert_non_null(strstr(f->message, name));
	assert_non_null(strstr(f->message, why));
	free(f->message);
}

/* A file of holes, which takes no room, is not hashed for hours. */
static void holes(void **state)
{
	struct fixture *f = *state;
	const int fd = openat(f->dir_fd, f->names[5], O_WRONLY | O_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	(void)close(fd);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		expect_refusal(f, counts[i], f->names[5], "and ptd writes 536870912 at most");
	put(f, 5);
}

/* Each file in turn has another byte, or one more, or is gone. */
static void another_file(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < N_FILES; i++) {
		for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
			const size_t size = f->sizes[i], more = k % 2 || size == 0;

			f->bytes[i][more ? size : size / 2]++;
			tempdir_put(f->dir, f->names[i], f->bytes[i], size + more);
			f->bytes[i][more ? size : size / 2]--;
			expect_refusal(f, counts[k], f->names[i],
				       " is not the file that was written");
			assert_int_equal(unlinkat(f->dir_fd, f->names[i], 0), 0);
			expect_refusal(f, counts[k], f->names[i], " is missing");
			put(f, i);
		}
	}
}

/* A data file with pieces: each of them, and another number of them. */
static void another_piece(void **state)
{
	struct fixture *f = *state;
	char where[64];

	for (size_t i = 0; i < N_DATA; i += PIECES_SIZE) {
		for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
			f->bytes[0][i + 5]++;
			put(f, 0);
			f->bytes[0][i + 5]--;
			snprintf(where, sizeof(where), "from byte %zu on", i);
			expect_refusal(f, counts[k],
				       "data is not the file that was written: ", where);
			tempdir_put(f->dir, "data", f->bytes[0], i);
			expect_refusal(f, counts[k], "data is not the file that was written: ",
				       "pieces does not have a hash for each MiB");
		}
	}
	put(f, 0);
}

/* Data files that are not among the sums were not written by ptd. */
static void more_data(void **state)
{
	struct fixture *f = *state;

	tempdir_put_text(f->dir, "data.0", "more");
	for (size_t k = 0; k < ARRAY_LEN(counts); k++)
		expect_refusal(f, counts[k], "data.0", " is not in SHA256SUMS");
	assert_int_equal(unlinkat(f->dir_fd, "data.0", 0), 0);
	/* Without data.0, it is not read. */
	tempdir_put_text(f->dir, "data.1", "more");
	assert_int_equal(check(f, 1), 0);
	assert_int_equal(unlinkat(f->dir_fd, "data.1", 0), 0);
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
		cmocka_unit_test(as_written), cmocka_unit_test(another_file),
		cmocka_unit_test(holes),      cmocka_unit_test(more_data),
		cmocka_unit_test(canceled),   cmocka_unit_test(nothing_left),
	};
	static const struct CMUnitTest piecewise[] = {
		cmocka_unit_test(as_written), cmocka_unit_test(another_file),
		cmocka_unit_test(holes),      cmocka_unit_test(another_piece),
		cmocka_unit_test(canceled),   cmocka_unit_test(nothing_left),
	};

	return cmocka_run_group_tests(tests, without_pieces, tear_down) +
	       cmocka_run_group_tests(piecewise, with_pieces, tear_down);
}
