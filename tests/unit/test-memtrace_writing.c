/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memtrace writing: all bytes come into the files; after a failure no more of them do. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/drmemtrace/out.h"
#include "decoder/drmemtrace/writing.h"
#include "ptd/threads.h"

#define N_PIECES 200

static const size_t counts[] = { 1, 2, 3 };

/* Return: as memtrace_writing_add() of a piece whose bytes are all @byte. */
static int add(struct memtrace_writing *w, int fd, int byte, size_t n, uint64_t offset)
{
	uint8_t *buffer = memtrace_writing_buffer(w);

	assert_non_null(buffer);
	memset(buffer, byte, n);
	return memtrace_writing_add(w, fd, buffer, n, offset);
}

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void all_is_written(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
		const int fds[] = { memfd_create("a", MFD_CLOEXEC),
				    memfd_create("b", MFD_CLOEXEC) };
		struct ptd_threads *threads;
		struct memtrace_writing *w;
		uint8_t byte;

		assert_int_equal(ptd_threads_new(counts[k], &threads), 0);
		assert_int_equal(memtrace_writing_new(threads, &w), 0);
		assert_int_equal(memtrace_writing_drain(w), 0);
		for (int i = 0; i < N_PIECES; i++)
			assert_int_equal(add(w, fds[i % 2], i, 1000, 1000 * ((uint64_t)i / 2)), 0);
		/* The bytes that were added last count. */
		assert_int_equal(add(w, fds[0], 0xee, 1, 7), 0);
		assert_int_equal(memtrace_writing_drain(w), 0);
		assert_int_equal(size_of(fds[0]), 1000 * N_PIECES / 2);
		assert_int_equal(size_of(fds[1]), 1000 * N_PIECES / 2);
		for (int i = 0; i < N_PIECES; i++) {
			assert_int_equal(pread(fds[i % 2], &byte, 1, 1000 * (i / 2) + 999), 1);
			assert_int_equal(byte, i);
		}
		assert_int_equal(pread(fds[0], &byte, 1, 7), 1);
		assert_int_equal(byte, 0xee);
		memtrace_writing_give_back(w, memtrace_writing_buffer(w));
		assert_null(memtrace_writing_free(w));
		assert_null(ptd_threads_free(threads));
		(void)close(fds[0]);
		(void)close(fds[1]);
	}
}

static void after_a_failure(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
		const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
		const int fd = memfd_create("a", MFD_CLOEXEC);
		struct ptd_threads *threads;
		struct memtrace_writing *w;
		int r = 0;

		assert_true(full >= 0 && fd >= 0);
		assert_int_equal(ptd_threads_new(counts[k], &threads), 0);
		assert_int_equal(memtrace_writing_new(threads, &w), 0);
		assert_int_equal(add(w, full, 1, MEMTRACE_OUT_BUFFER, 0), 0);
		/* Whoever goes on adding is told. */
		for (int i = 0; i < N_PIECES && r == 0; i++)
			r = add(w, fd, i, 10, 0);
		assert_int_equal(r, -ENOSPC);
		assert_int_equal(memtrace_writing_drain(w), -ENOSPC);
		assert_int_equal(size_of(fd), 0);
		assert_null(memtrace_writing_free(w));
		assert_null(ptd_threads_free(threads));
		(void)close(full);
		(void)close(fd);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_written),
		cmocka_unit_test(after_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
