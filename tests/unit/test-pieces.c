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

/* Make a file of @size bytes, and the lines of its pieces. */
static int make(uint64_t size, char **ret_text, size_t *ret_n)
{
	const int fd = memfd_create("file", MFD_CLOEXEC);
	FILE *f = open_memstream(ret_text, ret_n);
	struct pieces *pieces;

	assert_true(fd >= 0 && f);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pieces_of_file(fd, NULL, &pieces), 0);
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

		assert_int_equal(n, 65 * rows[i].n);
		assert_int_equal(pieces_read(text, n, rows[i].size + PIECES_SIZE, &pieces),
				 -EBADMSG);
		assert_null(pieces);
		assert_int_equal(pieces_read(text, n, rows[i].size, &pieces), 0);
		assert_int_equal(pieces_check(pieces, fd, 0, rows[i].size), 0);
		pieces_free(pieces);
		free(text);
		(void)close(fd);
	}
}

static void changed(void **state)
{
	struct pieces *pieces;
	uint64_t offset;
	char *text;
	size_t n;
	const int fd = make(3 * PIECES_SIZE, &text, &n);

	(void)state;
	assert_int_equal(pwrite(fd, "x", 1, PIECES_SIZE + 5), 1);
	assert_int_equal(pieces_read(text, n, 3 * PIECES_SIZE, &pieces), 0);
	assert_int_equal(pieces_check(pieces, fd, 0, PIECES_SIZE), 0);
	assert_int_equal(pieces_check(pieces, fd, 2 * PIECES_SIZE, 7), 0);
	assert_false(pieces_failed(pieces, &offset));
	assert_int_equal(pieces_check(pieces, fd, PIECES_SIZE - 1, 2), -EKEYREJECTED);
	assert_true(pieces_failed(pieces, &offset));
	assert_int_equal(offset, PIECES_SIZE);
	/* It stays so. */
	assert_int_equal(pieces_check(pieces, fd, 2 * PIECES_SIZE - 1, 1), -EKEYREJECTED);
	assert_int_equal(ftruncate(fd, PIECES_SIZE), 0);
	assert_int_equal(pieces_check(pieces, fd, PIECES_SIZE, 1), -ESTALE);
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
