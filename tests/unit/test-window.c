/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Windows over bytes in parts of files: every size of window, every place, over every cut of the
 * bytes into parts; files that become shorter, or are not as they were written.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "util/pieces.h"
#include "util/window.h"

#define SIZE 60

struct fixture {
	int fds[2];
	uint8_t bytes[SIZE]; /* the files have these, in their parts */
	struct filepart parts[4];
	struct fileparts all;
};

static int make_file(const void *bytes, size_t size)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(write(fd, bytes, size) == (ssize_t)size);
	return fd;
}

/* The second part lies in the first file behind the third; bytes of no part lie between them. */
static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint8_t file[100];

	assert_non_null(f);
	for (size_t i = 0; i < SIZE; i++)
		f->bytes[i] = (uint8_t)(i + 1);
	memset(file, 0xee, sizeof(file));
	memcpy(file + 3, f->bytes, 20);
	memcpy(file + 60, f->bytes + 20, 1);
	memcpy(file + 30, f->bytes + 21, 17);
	f->fds[0] = make_file(file, 61);
	f->fds[1] = make_file(f->bytes + 38, 22);
	f->parts[0] = (struct filepart){ .start = 0, .offset = 3, .fd = f->fds[0] };
	f->parts[1] = (struct filepart){ .start = 20, .offset = 60, .fd = f->fds[0] };
	f->parts[2] = (struct filepart){ .start = 21, .offset = 30, .fd = f->fds[0] };
	f->parts[3] = (struct filepart){ .start = 38, .offset = 0, .fd = f->fds[1] };
	f->all = (struct fileparts){ .size = SIZE, .parts = f->parts, .n = 4 };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	close(f->fds[0]);
	close(f->fds[1]);
	free(f);
	return 0;
}

static void reads_every_range(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[SIZE];

	for (size_t from = 0; from <= SIZE; from++)
		for (size_t n = 0; n <= SIZE - from; n++) {
			assert_int_equal(fileparts_read(&f->all, from, bytes, n), 0);
			assert_memory_equal(bytes, f->bytes + from, n);
		}
}

/* Look at @least bytes at each place that is @step from the last one, round and round. */
static void look(struct fixture *f, const struct fileparts *all, size_t capacity, size_t least,
		 size_t step)
{
	struct window w;
	uint64_t at = 0;

	window_init(&w, all, capacity);
	for (size_t i = 0; i < 2 * (size_t)SIZE; i++, at = (at + step) % (SIZE + 1)) {
		const size_t left = SIZE - (size_t)at;
		size_t n;
		const uint8_t *bytes = window_at(&w, at, least, &n);

		assert_true(n >= (least < left ? least : left) && n <= left);
		assert_true(capacity == 0 || n <= capacity);
		assert_true((bytes == NULL) == (left == 0));
		if (n > 0)
			assert_memory_equal(bytes, f->bytes + at, n);
	}
	assert_int_equal(w.error, 0);
	window_deinit(&w);
}

static void holds_what_is_asked_for(void **state)
{
	struct fixture *f = *state;
	const struct fileparts memory = fileparts_in_memory(f->bytes, SIZE);

	for (size_t capacity = 1; capacity <= SIZE + 1; capacity += 4)
		for (size_t least = 1; least <= capacity; least += 3)
			for (size_t step = 1; step <= SIZE; step += 6) {
				look(f, &f->all, capacity, least, step);
				look(f, &memory, capacity, least, step);
				look(f, &memory, 0, least, step);
			}
}

static void nothing(void **state)
{
	const struct fileparts all[] = { {}, fileparts_in_memory(NULL, 0) };
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		for (size_t capacity = 0; capacity < 2; capacity++) {
			struct window w;

			window_init(&w, &all[i], capacity);
			assert_null(window_at(&w, 0, 1, &n));
			assert_int_equal(n, 0);
			assert_int_equal(window_find(&w, 0, "ab", 2), 0);
			assert_int_equal(w.error, 0);
			window_deinit(&w);
		}
	}
}

static void finds(void **state)
{
	struct fixture *f = *state;

	for (size_t capacity = 4; capacity < SIZE; capacity += 3) {
		for (size_t at = 0; at + 4 <= SIZE; at++) {
			struct window w;

			window_init(&w, &f->all, capacity);
			assert_int_equal(window_find(&w, 0, f->bytes + at, 4), at);
			assert_int_equal(window_find(&w, at, f->bytes + at, 4), at);
			assert_int_equal(window_find(&w, at + 1, f->bytes + at, 4), SIZE);
			assert_int_equal(window_find(&w, 0, "\x05\x07", 2), SIZE);
			assert_int_equal(window_find(&w, SIZE + 5, f->bytes, 2), SIZE);
			assert_int_equal(w.error, 0);
			window_deinit(&w);
		}
	}
}

/* What is behind the cut is an error, also later; what is before it was read. */
static void a_file_becomes_shorter(void **state)
{
	struct fixture *f = *state;
	struct window w;
	size_t n;

	window_init(&w, &f->all, 10);
	assert_non_null(window_at(&w, 30, 10, &n));
	assert_int_equal(ftruncate(f->fds[1], 21), 0);
	assert_memory_equal(window_at(&w, 48, 10, &n), f->bytes + 48, 10);
	assert_null(window_at(&w, 58, 1, &n));
	assert_int_equal(n, 0);
	assert_int_equal(w.error, -ESTALE);
	assert_null(window_at(&w, 0, 1, &n));
	assert_int_equal(window_find(&w, 0, f->bytes, 4), SIZE);
	assert_int_equal(w.error, -ESTALE);
	window_deinit(&w);
}

static void cannot_be_read(void **state)
{
	const struct filepart part = { .fd = -1 };
	struct window w;
	size_t n;

	(void)state;
	window_init(&w, &(struct fileparts){ .size = 5, .parts = &part, .n = 1 }, 10);
	assert_null(window_at(&w, 0, 1, &n));
	assert_int_equal(n, 0);
	assert_int_equal(w.error, -EBADF);
	window_deinit(&w);
}

/* Bytes of a piece with another hash are an error when one of them is needed, and not before. */
static void a_piece_is_another(void **state)
{
	const size_t size = 3 * PIECES_SIZE;
	uint8_t *bytes = calloc(1, size);
	struct filepart part = { .fd = memfd_create("test", MFD_CLOEXEC) };
	const struct fileparts all = { .size = size, .parts = &part, .n = 1 };
	char hex[SHA256_HEX_SIZE], *text = NULL;
	size_t n_text, n;
	FILE *lines = open_memstream(&text, &n_text);
	struct pieces *pieces;
	struct window w;

	(void)state;
	assert_true(bytes && lines);
	assert_int_equal(ftruncate(part.fd, (off_t)size), 0);
	assert_int_equal(pieces_of_file(part.fd, NULL, hex, &pieces), 0);
	pieces_print(pieces, lines);
	pieces_free(pieces);
	assert_int_equal(fclose(lines), 0);
	assert_int_equal(pieces_read(text, n_text, size, &part.pieces), 0);
	assert_int_equal(pwrite(part.fd, "x", 1, PIECES_SIZE + 5), 1);

	window_init(&w, &all, 100);
	assert_memory_equal(window_at(&w, PIECES_SIZE - 50, 16, &n), bytes, 50);
	assert_int_equal(n, 50);
	assert_memory_equal(window_at(&w, PIECES_SIZE - 16, 16, &n), bytes, 16);
	assert_int_equal(n, 16);
	assert_memory_equal(window_at(&w, 2 * PIECES_SIZE, 100, &n), bytes, 100);
	assert_int_equal(n, 100);
	assert_int_equal(w.error, 0);
	assert_null(window_at(&w, PIECES_SIZE - 15, 16, &n));
	assert_int_equal(n, 0);
	assert_int_equal(w.error, -EKEYREJECTED);
	window_deinit(&w);

	/* Who reads all that was asked for gets none of it. */
	assert_int_equal(fileparts_read(&all, 0, bytes, PIECES_SIZE), 0);
	assert_int_equal(fileparts_read(&all, 0, bytes, PIECES_SIZE + 1), -EKEYREJECTED);
	assert_int_equal(filepart_read(&part, 1, bytes, PIECES_SIZE), -EKEYREJECTED);
	pieces_free(part.pieces);
	free(text);
	free(bytes);
	(void)close(part.fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_every_range, set_up, tear_down),
		cmocka_unit_test_setup_teardown(holds_what_is_asked_for, set_up, tear_down),
		cmocka_unit_test(nothing),
		cmocka_unit_test_setup_teardown(finds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_becomes_shorter, set_up, tear_down),
		cmocka_unit_test(cannot_be_read),
		cmocka_unit_test(a_piece_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
