/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The hashes of pieces of a file: they find what was changed, in the piece that is looked at. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/pieces.h"
#include "util/sha256.h"

/* Make a file of @size bytes, and the lines of its pieces. */
static int make(uint64_t size, char **ret_text, size_t *ret_n)
{
	const int fd = memfd_create("file", MFD_CLOEXEC);
	FILE *f = open_memstream(ret_text, ret_n);
	char whole[SHA256_HEX_SIZE], expected[SHA256_HEX_SIZE];
	struct pieces *pieces;
	uint64_t hashed;

	assert_true(fd >= 0 && f);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pieces_of_file(fd, NULL, whole, &pieces), 0);
	assert_int_equal(sha256_fd(fd, NULL, NULL, expected, &hashed), 0);
	assert_int_equal(hashed, size);
	assert_string_equal(whole, expected);
	pieces_print(pieces, f);
	assert_int_equal(fclose(f), 0);
	pieces_free(pieces);
	return fd;
}

static void sizes(void **state)
{
	static const struct {
		uint64_t size;
		size_t n;
	} rows[] = {
		{ 0, 0 },
		{ 1, 1 },
		{ PIECES_SIZE, 1 },
		{ PIECES_SIZE + 1, 2 },
		{ 3 * PIECES_SIZE, 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pieces *pieces = NULL;
		char *text;
		size_t n;
		const int fd = make(rows[i].size, &text, &n);
		uint64_t n_good = 0;

		assert_int_equal(n, 65 * rows[i].n);
		assert_int_equal(pieces_read(text, n, rows[i].size + PIECES_SIZE, &pieces),
				 -EBADMSG);
		assert_null(pieces);
		assert_int_equal(pieces_read(text, n, rows[i].size, &pieces), 0);
		assert_int_equal(pieces_check(pieces, fd, 0, rows[i].size, &n_good), 0);
		assert_int_equal(n_good, rows[i].size);
		pieces_free(pieces);
		free(text);
		(void)close(fd);
	}
}

/* Of five pieces the second and the fourth are changed: what lies before them can be read. */
static void changed(void **state)
{
	static const struct {
		uint64_t offset, n;
		int r;
		uint64_t n_good;
	} rows[] = {
		{ 0, PIECES_SIZE, 0, PIECES_SIZE },
		{ 2 * PIECES_SIZE, 7, 0, 7 },
		{ PIECES_SIZE - 1, 2, 0, 1 },
		{ PIECES_SIZE - 1, 5 * PIECES_SIZE, 0, 1 },
		{ PIECES_SIZE, 1, -EKEYREJECTED, 0 },
		{ 2 * PIECES_SIZE - 1, 1, -EKEYREJECTED, 0 },
		{ 2 * PIECES_SIZE, 3 * PIECES_SIZE, 0, PIECES_SIZE },
		{ 2 * PIECES_SIZE + 5, 2 * PIECES_SIZE, 0, PIECES_SIZE - 5 },
		{ 4 * PIECES_SIZE, PIECES_SIZE, 0, PIECES_SIZE },
	};
	struct pieces *pieces;
	uint64_t n_good, offset;
	char *text;
	size_t n;
	const int fd = make(5 * PIECES_SIZE, &text, &n);

	(void)state;
	assert_int_equal(pwrite(fd, "x", 1, 3 * PIECES_SIZE), 1);
	assert_int_equal(pwrite(fd, "x", 1, PIECES_SIZE + 5), 1);
	assert_int_equal(pieces_read(text, n, 5 * PIECES_SIZE, &pieces), 0);
	assert_false(pieces_failed(pieces, &offset));
	/* The second time it is known. */
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const size_t row = i % ARRAY_LEN(rows);

		n_good = 0;
		assert_int_equal(pieces_check(pieces, fd, rows[row].offset, rows[row].n, &n_good),
				 rows[row].r);
		assert_int_equal(n_good, rows[row].n_good);
	}
	/* Whichever was found first. */
	assert_true(pieces_failed(pieces, &offset));
	assert_int_equal(offset, PIECES_SIZE);
	pieces_free(pieces);

	assert_int_equal(pieces_read(text, n, 5 * PIECES_SIZE, &pieces), 0);
	assert_int_equal(ftruncate(fd, PIECES_SIZE), 0);
	assert_int_equal(pieces_check(pieces, fd, PIECES_SIZE, 1, &n_good), -ESTALE);
	assert_false(pieces_failed(pieces, &offset));
	pieces_free(pieces);
	free(text);
	(void)close(fd);
}

static void bad_lines(void **state)
{
	struct pieces *pieces = NULL;
	char *text;
	size_t n;
	const int fd = make(1, &text, &n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const char before = text[i];

		text[i] = 'x';
		assert_int_equal(pieces_read(text, n, 1, &pieces), -EBADMSG);
		text[i] = before;
	}
	assert_int_equal(pieces_read(text, n - 1, 1, &pieces), -EBADMSG);
	assert_int_equal(pieces_read(text, 0, 1, &pieces), -EBADMSG);
	assert_null(pieces);
	free(text);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(changed),
		cmocka_unit_test(bad_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
