/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The descriptor survives that all are closed, and is not among them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/plugin/fdholder.h"

static void keeps(void **state)
{
	const int own = memfd_create("test-keeper", MFD_CLOEXEC);
	const int high = fcntl(own, F_DUPFD_CLOEXEC, 100);
	struct fdholder fdholder;
	struct stat before, after;
	int fd;

	(void)state;
	assert_true(own >= 0 && high >= 100);
	assert_int_equal(fstat(own, &before), 0);
	assert_int_equal(fdholder_start(&fdholder, high), 0);
	(void)close(own);
	(void)close(high);
	assert_int_equal(fcntl(high, F_GETFD), -1);

	for (int i = 0; i < 2; i++) {
		fd = fdholder_borrow(&fdholder);
		/* Nothing else of ours is taken. */
		assert_int_equal(fd, own);
		assert_int_equal(fstat(fd, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
		(void)close(fd);
	}
}

static void nothing_kept(void **state)
{
	struct fdholder fdholder = {};

	(void)state;
	assert_int_equal(fdholder_borrow(&fdholder), -EBADF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps),
		cmocka_unit_test(nothing_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
