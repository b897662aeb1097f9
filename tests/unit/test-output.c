/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Output: every byte arrives, in order, and an error is told once and for all. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "decoder/util/mapfile.h"

static int setup(void **state)
{
	char *path = strdup("/tmp/test-output-XXXXXX");
	_cleanup_(fd_closep) int fd = mkstemp(path);

	assert_true(fd >= 0);
	*state = path;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(unlink(*state), 0);
	free(*state);
	return 0;
}

static void arrives(void **state)
{
	static uint8_t big[OUTPUT_SIZE * 2 + 17];
	_cleanup_(output_deinit) struct output output = {};
	_cleanup_(mapfile_deinit) struct mapfile file = {};

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 7 + (i >> 11));
	assert_int_equal(output_init(&output, *state), 0);
	assert_int_equal(output_write(&output, "abc", 3), 0);
	assert_int_equal(output_write(&output, big, sizeof(big)), 0);
	assert_int_equal(output_reserve(&output, OUTPUT_SIZE), 0);
	assert_int_equal(output.n_used, 0);
	memcpy(output.buffer, "defg", 4);
	output.n_used += 4;
	output_printf(&output, "%d-%s", 12, "x");
	assert_int_equal(output_finish(&output), 0);

	assert_int_equal(mapfile_init(&file, AT_FDCWD, *state), 0);
	assert_int_equal(file.size, 3 + sizeof(big) + 4 + 4);
	assert_memory_equal(file.bytes, "abc", 3);
	assert_memory_equal(file.bytes + 3, big, sizeof(big));
	assert_memory_equal(file.bytes + 3 + sizeof(big), "defg12-x", 8);
}

static void empties_an_old_file(void **state)
{
	_cleanup_(output_deinit) struct output output = {};
	_cleanup_(mapfile_deinit) struct mapfile file = {};

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(output_init(&output, *state), 0);
		assert_int_equal(output_write(&output, "abcdef", i == 0 ? 6 : 1), 0);
		assert_int_equal(output_finish(&output), 0);
		output_deinit(&output);
	}
	assert_int_equal(mapfile_init(&file, AT_FDCWD, *state), 0);
	assert_int_equal(file.size, 1);
}

static void refuses(void **state)
{
	struct output output = { .fd = 99 };

	(void)state;
	assert_int_equal(output_init(&output, "/nonexistent/x"), -ENOENT);
	assert_int_equal(output_init(&output, "/tmp"), -EISDIR);
	assert_int_equal(output.fd, 99);
}

static void full_disk(void **state)
{
	_cleanup_(output_deinit) struct output output = {};

	(void)state;
	if (access("/dev/full", W_OK) < 0) {
		print_message("no /dev/full\n");
		skip();
	}
	assert_int_equal(output_init(&output, "/dev/full"), 0);
	assert_int_equal(output_write(&output, "abc", 3), 0);
	assert_int_equal(output_flush(&output), -ENOSPC);
	assert_int_equal(output_write(&output, "abc", 3), -ENOSPC);
	assert_int_equal(output_reserve(&output, 1), -ENOSPC);
	output_printf(&output, "x");
	assert_int_equal(output_finish(&output), -ENOSPC);
}

static void reader_goes_away(void **state)
{
	_cleanup_(output_deinit) struct output output = {};
	char path[32];
	int fds[2];

	(void)state;
	assert_ptr_not_equal(signal(SIGPIPE, SIG_IGN), SIG_ERR);
	assert_int_equal(pipe(fds), 0);
	assert_true(snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]) > 0);
	assert_int_equal(output_init(&output, path), 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_int_equal(output_write(&output, "abc", 3), 0);
	assert_int_equal(output_finish(&output), -EPIPE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arrives, setup, teardown),
		cmocka_unit_test_setup_teardown(empties_an_old_file, setup, teardown),
		cmocka_unit_test(refuses),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(reader_goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
