/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Full write: all bytes arrive where the kernel takes them in parts, where it has no room for a
 * while, and where signals interrupt it; and what it refuses is reported.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <assert.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "util/fullwrite.h"

#define SIZE ((size_t)1 << 20) /* more than a pipe holds */

static uint8_t sent[SIZE], received[SIZE];

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		sent[i] = (uint8_t)(i * 7 + i / 251);
	memset(received, 0, SIZE);
	return 0;
}

/* Reads a pipe slowly, and meanwhile interrupts the thread that writes to it. */
struct reader {
	pthread_t writer;
	int fd;
	bool interrupts;
	size_t n;
};

static atomic_uint n_signals;

static void count_signal(int signal)
{
	(void)signal;
	atomic_fetch_add(&n_signals, 1);
}

static void *read_slowly(void *userdata)
{
	struct reader *r = userdata;

	for (ssize_t n = 1; n > 0 && r->n < SIZE; r->n += (size_t)n) {
		/* The first signal ends a write in the middle, the second one before it began. */
		for (unsigned k = 0; k < 2; k++) {
			usleep(2000);
			if (r->interrupts)
				(void)pthread_kill(r->writer, SIGUSR1);
		}
		usleep(2000);
		n = read(r->fd, received + r->n, SIZE - r->n < SIZE / 8 ? SIZE - r->n : SIZE / 8);
		assert(n >= 0);
	}
	return NULL;
}

static void write_to_pipe(int flags, bool interrupts)
{
	const struct sigaction action = { .sa_handler = count_signal };
	struct reader reader = { .writer = pthread_self(), .interrupts = interrupts };
	pthread_t thread;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true(flags == 0 || fcntl(fds[1], F_SETFL, flags) == 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	reader.fd = fds[0];
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	assert_int_equal(fullwrite(fds[1], sent, SIZE), 0);
	(void)fd_close(fds[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)fd_close(fds[0]);
	assert_int_equal(reader.n, SIZE);
	assert_memory_equal(received, sent, SIZE);
}

static void slow_pipe(void **state)
{
	(void)state;
	write_to_pipe(0, false);
}

static void pipe_that_does_not_block(void **state)
{
	(void)state;
	write_to_pipe(O_NONBLOCK, false);
}

static void signals_interrupt_it(void **state)
{
	(void)state;
	atomic_store(&n_signals, 0);
	write_to_pipe(0, true);
	assert_true(atomic_load(&n_signals) > 0);
}

static void at_an_offset(void **state)
{
	_cleanup_(fd_closep) int fd = memfd_create("test", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fullwrite(fd, "abcdef", 6), 0);
	assert_int_equal(fullwrite_at(fd, "XY", 2, 2), 0);
	assert_int_equal(fullwrite_at(fd, "", 0, 100), 0);
	/* The file's own offset is where it was. */
	assert_int_equal(fullwrite(fd, "g", 1), 0);
	assert_int_equal(pread(fd, received, SIZE, 0), 7);
	assert_memory_equal(received, "abXYefg", 7);
}

static void what_the_kernel_refuses(void **state)
{
	_cleanup_(fd_closep) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_true(full >= 0);
	assert_int_equal(fullwrite(full, "a", 1), -ENOSPC);
	assert_int_equal(fullwrite_at(full, "a", 1, 0), -ENOSPC);
	assert_int_equal(fullwrite(full, "", 0), 0);
	assert_int_equal(fullwrite(-1, "a", 1), -EBADF);
	assert_int_equal(fullwrite_at(-1, "a", 1, 0), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(slow_pipe, setup),
		cmocka_unit_test_setup(pipe_that_does_not_block, setup),
		cmocka_unit_test_setup(signals_interrupt_it, setup),
		cmocka_unit_test(at_an_offset),
		cmocka_unit_test(what_the_kernel_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
