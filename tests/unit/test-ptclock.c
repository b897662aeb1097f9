/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/source/ptclock.h"

static void conversion(void **state)
{
	struct perf_event_mmap_page page = {
		.cap_user_time_zero = 1, .time_shift = 31, .time_mult = 1073741824, .time_zero = 5
	};
	struct tsc_conv c = { .mult = 77 };

	(void)state;
	assert_int_equal(ptclock_read(&page, &c), 0);
	assert_int_equal(tsc_to_ns(&c, 1000), 505);
	assert_int_equal(tsc_to_ns(&c, UINT64_C(1) << 62), (UINT64_C(1) << 61) + 5);
	assert_int_equal(tsc_from_ns(&c, 505), 1000);
	assert_int_equal(tsc_from_ns(&c, (UINT64_C(1) << 61) + 5), UINT64_C(1) << 62);
	/* It is often "negative". */
	c.zero = (uint64_t)-100;
	assert_int_equal(tsc_to_ns(&c, 1000), 400);
	assert_int_equal(tsc_from_ns(&c, 400), 1000);

	c.mult = 77;
	page.cap_user_time_zero = 0;
	assert_int_equal(ptclock_read(&page, &c), -EOPNOTSUPP);
	page.cap_user_time_zero = 1;
	page.time_mult = 0;
	assert_int_equal(ptclock_read(&page, &c), -EOPNOTSUPP);
	/* No file with such a shift could be read. */
	page.time_mult = 1;
	page.time_shift = 33;
	assert_int_equal(ptclock_read(&page, &c), -EOPNOTSUPP);
	assert_int_equal(c.mult, 77);
}

static void samples(void **state)
{
	const struct ptclock_sample a = ptclock_sample(), b = ptclock_sample();

	(void)state;
	assert_true(a.tsc < b.tsc);
	assert_true(a.monotonic_ns <= b.monotonic_ns);
	assert_true(a.realtime_ns > a.monotonic_ns);
}

/* How many lines, and the TSC of the first, second and last. */
static size_t print(struct ptclock_log *log, uint64_t since, uint64_t ret_tsc[3])
{
	uint64_t tsc, monotonic, realtime, before = 0;
	char *text = NULL, *p;
	size_t size, n = 0;
	FILE *f = open_memstream(&text, &size);

	ptclock_log_write(log, since, f);
	assert_int_equal(fclose(f), 0);
	for (p = text; *p; p = strchr(p, '\n') + 1, n++) {
		assert_int_equal(
		    sscanf(p, "%" SCNu64 " %" SCNu64 " %" SCNu64 "\n", &tsc, &monotonic, &realtime),
		    3);
		assert_true(n == 0 || tsc > before);
		assert_int_equal(monotonic, tsc + 1);
		assert_int_equal(realtime, tsc + 2);
		ret_tsc[n < 2 ? n : 2] = ret_tsc[2] = before = tsc;
	}
	free(text);
	return n;
}

static void a_long_log(void **state)
{
	struct ptclock_log *log;
	uint64_t tsc[3];
	size_t n;

	(void)state;
	assert_int_equal(ptclock_log_new(&log), 0);
	assert_int_equal(print(log, 0, tsc), 0);
	/* A log of 2048 samples is full: one more drops every other one of the older half. */
	for (uint64_t i = 1; i <= 2048; i++)
		ptclock_log_add(log, &(struct ptclock_sample){ 10 * i, 10 * i + 1, 10 * i + 2 });
	assert_int_equal(print(log, 0, tsc), 2048);
	ptclock_log_add(log, &(struct ptclock_sample){ 20490, 20491, 20492 });
	assert_int_equal(print(log, 0, tsc), 512 + 1024 + 1);
	assert_int_equal(print(log, 10250, tsc), 1024 + 1);
	assert_int_equal(tsc[0], 10250);
	ptclock_log_clear(log);

	/* Eleven days. */
	for (uint64_t i = 1; i <= 1000000; i++)
		ptclock_log_add(log, &(struct ptclock_sample){ 10 * i, 10 * i + 1, 10 * i + 2 });
	n = print(log, 0, tsc);
	assert_true(n >= 1024 && n <= 2048);
	assert_int_equal(tsc[2], 10000000);

	/* The last 900 are all there; the one before the time asked for comes first. */
	assert_int_equal(print(log, 10000000 - 9000 + 5, tsc), 901);
	assert_int_equal(tsc[0], 10000000 - 9000);
	assert_int_equal(print(log, 10000000 - 9000, tsc), 901);
	assert_int_equal(print(log, UINT64_MAX, tsc), 1);

	ptclock_log_clear(log);
	assert_int_equal(print(log, 0, tsc), 0);
	(void)ptclock_log_free(log);
}

/* Another process goes on with the samples, also after some were dropped to make room. */
static void samples_outlive_a_process(void **state)
{
	struct ptclock_log *log, *next;
	uint64_t tsc[3];
	int fd;

	(void)state;
	assert_int_equal(ptclock_log_new(&log), 0);
	for (uint64_t i = 1; i <= 2500; i++) {
		ptclock_log_add(log, &(struct ptclock_sample){ 10 * i, 10 * i + 1, 10 * i + 2 });
		if (i % 500 > 0)
			continue;
		fd = fcntl(ptclock_log_fd(log), F_DUPFD_CLOEXEC, 0);
		assert_int_equal(ptclock_log_resume(fd, &next), 0);
		(void)ptclock_log_free(log);
		log = next;
		assert_int_equal(print(log, 0, tsc), i <= 2048 ? i : i - 512);
		assert_int_equal(tsc[2], 10 * i);
	}
	(void)ptclock_log_free(log);

	fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ptclock_log_resume(fd, &log), -EBADMSG);
	assert_int_equal(ptclock_log_resume(-1, &log), -EBADF);
	(void)close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(conversion),
		cmocka_unit_test(samples),
		cmocka_unit_test(samples_outlive_a_process),
		cmocka_unit_test(a_long_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
