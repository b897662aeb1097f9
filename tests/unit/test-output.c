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
#include "tests/lib/terminal.h"
#include "util/mapfile.h"

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

/* Write to the file at @path, which is emptied; @room as in struct sink_config. */
static void begin(struct output *output, const char *path, uint64_t *room)
{
	const struct sink_config config = {
		.fd = open(path, O_WRONLY | O_CLOEXEC),
		.is_emptied = true,
		.room = room,
	};

	assert_true(config.fd >= 0);
	assert_int_equal(output_init(output, &config), 0);
}

static void arrives(void **state)
{
	static uint8_t big[OUTPUT_SIZE * 2 + 17];
	_cleanup_(output_deinit) struct output output = output_none();
	_cleanup_(mapfile_deinit) struct mapfile file = {};

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 7 + (i >> 11));
	begin(&output, *state, NULL);
	assert_int_equal(output_write(&output, "abc", 3), 0);
	assert_int_equal(output_write(&output, big, sizeof(big)), 0);
	assert_int_equal(output_reserve(&output, OUTPUT_SIZE), 0);
	assert_int_equal(output.n_used, 0);
	memcpy(output.buffer, "defg", 4);
	output.n_used += 4;
	output_printf(&output, "%d-%s", 12, "x");
	assert_int_equal(output_finish(&output), 0);

	assert_int_equal(mapfile_read(&file, AT_FDCWD, *state), 0);
	assert_int_equal(file.size, 3 + sizeof(big) + 4 + 4);
	assert_memory_equal(file.bytes, "abc", 3);
	assert_memory_equal(file.bytes + 3, big, sizeof(big));
	assert_memory_equal(file.bytes + 3 + sizeof(big), "defg12-x", 8);
}

static void empties_an_old_file(void **state)
{
	_cleanup_(output_deinit) struct output output = output_none();
	_cleanup_(mapfile_deinit) struct mapfile file = {};

	for (size_t i = 0; i < 2; i++) {
		begin(&output, *state, NULL);
		assert_int_equal(output_write(&output, "abcdef", i == 0 ? 6 : 1), 0);
		assert_int_equal(output_finish(&output), 0);
		output_deinit(&output);
	}
	assert_int_equal(mapfile_read(&file, AT_FDCWD, *state), 0);
	assert_int_equal(file.size, 1);
}

/* What is there already stays, of an output that is not emptied. */
static void adds_to_standard_output(void **state)
{
	_cleanup_(output_deinit) struct output output = output_none();
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	const struct sink_config config = {
		.fd = open(*state, O_WRONLY | O_APPEND | O_CLOEXEC),
	};

	assert_int_equal(write(config.fd, "old ", 4), 4);
	assert_int_equal(output_init(&output, &config), 0);
	assert_int_equal(output_write(&output, "new", 3), 0);
	assert_int_equal(output_finish(&output), 0);
	assert_int_equal(mapfile_read(&file, AT_FDCWD, *state), 0);
	assert_int_equal(file.size, 7);
}

static void refuses(void **state)
{
	struct output output = { .fd = 99 };

	(void)state;
	assert_int_equal(output_init(&output, &(struct sink_config){ .fd = -1 }), -EBADF);
	assert_int_equal(output.fd, 99);
}

/* Two outputs that may write ten bytes together: the first ten go out, and then nothing more. */
static void room(void **state)
{
	_cleanup_(output_deinit) struct output first = output_none(), second = output_none();
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	char other[] = "/tmp/test-output-XXXXXX";
	_cleanup_(fd_closep) int fd = mkstemp(other);
	uint64_t left = 10;

	assert_true(fd >= 0);
	begin(&first, *state, &left);
	begin(&second, other, &left);
	assert_int_equal(output_write(&first, "abcdef", 6), 0);
	assert_int_equal(output_flush(&first), 0);
	assert_int_equal(left, 4);
	assert_int_equal(output_write(&second, "ghij", 4), 0);
	assert_int_equal(output_flush(&second), 0);
	assert_int_equal(output_write(&second, "k", 1), 0);
	assert_int_equal(output_finish(&second), -EFBIG);
	assert_int_equal(lseek(fd, 0, SEEK_END), 4);
	assert_int_equal(output_finish(&first), 0);
	assert_int_equal(left, 0);
	(void)unlink(other);

	left = 3;
	output_deinit(&first);
	begin(&first, *state, &left);
	assert_int_equal(output_write(&first, "abcdef", 6), 0);
	assert_int_equal(output_finish(&first), -EFBIG);
	assert_int_equal(mapfile_read(&file, AT_FDCWD, *state), 0);
	assert_int_equal(file.size, 3);
	assert_memory_equal(file.bytes, "abc", 3);
}

static void full_disk(void **state)
{
	_cleanup_(output_deinit) struct output output = output_none();

	(void)state;
	if (access("/dev/full", W_OK) < 0) {
		print_message("no /dev/full\n");
		skip();
	}
	begin(&output, "/dev/full", NULL);
	assert_int_equal(output_write(&output, "abc", 3), 0);
	assert_int_equal(output_flush(&output), -ENOSPC);
	assert_int_equal(output_write(&output, "abc", 3), -ENOSPC);
	assert_int_equal(output_reserve(&output, 1), -ENOSPC);
	output_printf(&output, "x");
	assert_int_equal(output_finish(&output), -ENOSPC);
}

static void reader_goes_away(void **state)
{
	_cleanup_(output_deinit) struct output output = output_none();
	char path[32];
	int fds[2];

	(void)state;
	assert_ptr_not_equal(signal(SIGPIPE, SIG_IGN), SIG_ERR);
	assert_int_equal(pipe(fds), 0);
	assert_true(snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]) > 0);
	begin(&output, path, NULL);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_int_equal(output_write(&output, "abc", 3), 0);
	assert_int_equal(output_finish(&output), -EPIPE);
}

/* Write @text to a terminal of 10 columns, and check what arrives. */
static void through_terminal(const char *text, size_t n_pieces, const char *expected)
{
	_cleanup_(output_deinit) struct output output = output_none();
	_cleanup_(freep) char *got = NULL;
	struct terminal terminal;

	terminal_open(&terminal, 10);
	assert_int_equal(
	    output_init(&output, &(struct sink_config){ .fd = fcntl(terminal.fd, F_DUPFD, 0) }), 0);
	output_fit(&output);
	for (size_t i = 0; i < n_pieces; i++) {
		const size_t start = i * strlen(text) / n_pieces;

		assert_int_equal(
		    output_write(&output, text + start, (i + 1) * strlen(text) / n_pieces - start),
		    0);
		assert_int_equal(output_flush(&output), 0);
	}
	got = terminal_read(&terminal);
	assert_string_equal(got, expected);
	terminal_close(&terminal);
}

/* Lines are cut at the terminal's width, wherever the buffer ends, and characters stay whole. */
static void terminal(void **state)
{
	static const char text[] =
	    "short\n"
	    "exactly 10\n"
	    "more than 10 of them\n"
	    "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xe2\x82\xac\xe2\x82\xac"
	    "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xacz\n"
	    "\nlast line, open";
	static const char expected[] =
	    "short\n"
	    "exactly 10\n"
	    "more than \n"
	    "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xe2\x82\xac\xe2\x82\xac"
	    "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\n"
	    "\nlast line,";

	(void)state;
	for (size_t n_pieces = 1; n_pieces < sizeof(text) - 1; n_pieces++)
		through_terminal(text, n_pieces, expected);
}

/* A file has no width. */
static void no_terminal(void **state)
{
	_cleanup_(output_deinit) struct output output = output_none();
	_cleanup_(mapfile_deinit) struct mapfile file = {};

	begin(&output, *state, NULL);
	output_fit(&output);
	for (size_t i = 0; i < 1000; i++)
		output_printf(&output, "0123456789");
	assert_int_equal(output_finish(&output), 0);
	assert_int_equal(mapfile_read(&file, AT_FDCWD, *state), 0);
	assert_int_equal(file.size, 10000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arrives, setup, teardown),
		cmocka_unit_test_setup_teardown(empties_an_old_file, setup, teardown),
		cmocka_unit_test_setup_teardown(adds_to_standard_output, setup, teardown),
		cmocka_unit_test(refuses),
		cmocka_unit_test_setup_teardown(room, setup, teardown),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(reader_goes_away),
		cmocka_unit_test(terminal),
		cmocka_unit_test_setup_teardown(no_terminal, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
