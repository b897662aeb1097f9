/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The build-ids of files, read in another thread; and a file whose reader waits. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/collector/mappings.h"
#include "util/buildid.h"

#define SECOND UINT64_C(1000000000)

static atomic_bool stuck;
static atomic_uint n_stuck; /* threads */

int __wrap_buildid_read(int fd, struct buildid *ret_id);
int __real_buildid_read(int fd, struct buildid *ret_id);

/* A disk that does not answer. */
int __wrap_buildid_read(int fd, struct buildid *ret_id)
{
	(void)atomic_fetch_add(&n_stuck, 1);
	while (atomic_load(&stuck))
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	(void)atomic_fetch_sub(&n_stuck, 1);
	return __real_buildid_read(fd, ret_id);
}

static int open_self(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void it_is_what_is_in_the_file(void **state)
{
	struct idreader *reader = NULL;
	struct buildid expected, id;
	int fd = open_self();

	(void)state;
	assert_int_equal(buildid_read(fd, &expected), 0);
	(void)close(fd);
	assert_int_equal(idreader_new(&reader), 0);
	for (unsigned i = 0; i < 1000; i++) {
		id = (struct buildid){};
		assert_int_equal(idreader_read(reader, open_self(), 60 * SECOND, &id), 0);
		assert_true(buildid_equal(&id, &expected));
	}
	fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(idreader_read(reader, fd, 60 * SECOND, &id), -EISDIR);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(idreader_free(reader));
	assert_null(idreader_free(NULL));
}

static void it_does_not_wait_for_long(void **state)
{
	const struct timespec little = { .tv_nsec = 1000000 };
	struct idreader *reader = NULL;
	struct buildid id = { .size = 99 };
	uint64_t begun;
	int r;

	(void)state;
	assert_int_equal(idreader_new(&reader), 0);
	atomic_store(&stuck, true);
	begun = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(idreader_read(reader, open_self(), SECOND / 50, &id), -ETIMEDOUT);
	assert_int_equal(idreader_read(reader, open_self(), SECOND * 60, &id), -EBUSY);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begun < 60 * SECOND);
	assert_int_equal(id.size, 99);

	/* When the disk answers, it reads again. */
	atomic_store(&stuck, false);
	while ((r = idreader_read(reader, open_self(), SECOND * 60, &id)) == -EBUSY)
		(void)nanosleep(&little, NULL);
	assert_int_equal(r, 0);
	assert_int_not_equal(id.size, 99);

	/* Nor does who frees it; but there are not ever more of them. */
	atomic_store(&stuck, true);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(idreader_read(reader, open_self(), SECOND / 50, &id), -ETIMEDOUT);
		/* On a busy machine the thread begins to read only later. */
		while (atomic_load(&n_stuck) <= i)
			(void)nanosleep(&little, NULL);
		assert_null(idreader_free(reader));
		r = idreader_new(&reader);
		assert_int_equal(r, i < 7 ? 0 : -EBUSY);
	}
	atomic_store(&stuck, false);
	while ((r = idreader_new(&reader)) == -EBUSY)
		(void)nanosleep(&little, NULL);
	assert_int_equal(r, 0);
	assert_int_equal(idreader_read(reader, open_self(), SECOND * 60, &id), 0);
	assert_null(idreader_free(reader));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_what_is_in_the_file),
		cmocka_unit_test(it_does_not_wait_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
