/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Trace: a snapshot directory that is whole, then one with one thing wrong at a time; and what else
 * can stand at a path.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "decoder/file/input.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/tempdir.h"
#include "util/sha256.h"

#define MANIFEST "format=ptd-snapshot-1\nhost=here\nrealtime_offset_ns=-1700000000000000123\n"

static struct perfbuild b;
static char dir[64];

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* Append the sum of a file to SHA256SUMS. */
static void add_sum(const char *name)
{
	_cleanup_(fd_closep) int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	char hex[SHA256_HEX_SIZE];
	uint64_t size;
	FILE *f;

	assert_int_equal(sha256_fd(fd, NULL, NULL, hex, &size), 0);
	f = fopen(path_of("SHA256SUMS"), "ae");
	assert_non_null(f);
	fprintf(f, "%s  %s\n", hex, name);
	assert_int_equal(fclose(f), 0);
}

static int make_snapshot(void **state)
{
	(void)state;
	tempdir_make("trace", dir);
	perfbuild_example(&b, false);
	tempdir_put(dir, "data", b.bytes, b.size);
	tempdir_put(dir, "manifest", MANIFEST, strlen(MANIFEST));
	tempdir_put(dir, "other", "something", 9);
	tempdir_put(dir, "objects/one", "code", 4);
	add_sum("data");
	add_sum("manifest");
	add_sum("other");
	add_sum("objects/one");
	return 0;
}

static int remove_snapshot(void **state)
{
	(void)state;
	tempdir_remove(dir);
	return 0;
}

static void opens(const char *path, bool force, int64_t realtime_offset_ns)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;
	char *message = NULL;

	if (input_open(path, force, NULL, &trace, &message) < 0)
		fail_msg("%s", message);
	assert_int_equal(trace->n_records, 8);
	assert_int_equal(trace->n_queues, 2);
	assert_int_equal(trace->facts.realtime_offset_ns, realtime_offset_ns);
}

/* @expected is a part of the message, which must begin with the path. */
static void refuses(const char *path, bool force, int r, const char *expected)
{
	_cleanup_(freep) char *message = NULL;
	struct trace *trace = (struct trace *)0x1;

	assert_int_equal(input_open(path, force, NULL, &trace, &message), r);
	assert_ptr_equal(trace, (struct trace *)0x1);
	assert_non_null(message);
	if (strncmp(message, path, strlen(path)) != 0 || !strstr(message, expected))
		fail_msg("%s", message);
}

static void whole(void **state)
{
	(void)state;
	opens(dir, false, INT64_C(-1700000000000000123));
	opens(dir, true, INT64_C(-1700000000000000123));
	opens(path_of("data"), false, 0);
}

static void damaged(void **state)
{
	static const struct {
		const char *name;
		const char *file;
		const char *content; /* NULL: remove it */
		int expected;
		const char *message;
		int64_t forced; /* time offset if it can be forced, 1 if not */
	} rows[] = {
		{ "a file was changed", "other", "somethinG", -EKEYREJECTED,
		  ": other is not the file that was written: its SHA-256 is ",
		  INT64_C(-1700000000000000123) },
		{ "a file below was changed", "objects/one", "", -EKEYREJECTED,
		  ": objects/one is not the file", INT64_C(-1700000000000000123) },
		{ "a file was removed", "other", NULL, -EKEYREJECTED, ": other is missing",
		  INT64_C(-1700000000000000123) },
		{ "the manifest was changed", "manifest", "format=ptd-snapshot-1\n", -EKEYREJECTED,
		  ": manifest is not the file", 0 },
		{ "the manifest was removed", "manifest", NULL, -EKEYREJECTED,
		  ": manifest is missing", 0 },
		{ "the sums were removed", "SHA256SUMS", NULL, -EKEYREJECTED,
		  ": SHA256SUMS is missing", INT64_C(-1700000000000000123) },
		{ "the sums are empty", "SHA256SUMS", "", -EKEYREJECTED,
		  ": SHA256SUMS does not name data", INT64_C(-1700000000000000123) },
		{ "the sums are none", "SHA256SUMS", "hello\n", -EBADMSG,
		  ": SHA256SUMS line 1: ", INT64_C(-1700000000000000123) },
		{ "the sums lead outside", "SHA256SUMS",
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a/../../x\n",
		  -EBADMSG, ": SHA256SUMS line 1: ", INT64_C(-1700000000000000123) },
		{ "the sums lead to the root", "SHA256SUMS",
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  /dev/null\n",
		  -EBADMSG, ": SHA256SUMS line 1: ", INT64_C(-1700000000000000123) },
		{ "the sums name a directory", "SHA256SUMS",
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  objects\n",
		  -EISDIR, ": cannot read objects: ", INT64_C(-1700000000000000123) },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		remove_snapshot(state);
		make_snapshot(state);
		if (rows[i].content)
			tempdir_put(dir, rows[i].file, rows[i].content, strlen(rows[i].content));
		else
			assert_int_equal(remove(path_of(rows[i].file)), 0);
		refuses(dir, false, rows[i].expected, rows[i].message);
		opens(dir, true, rows[i].forced);
	}
}

/* The manifest must be one even when the hashes do not count. */
static void bad_manifest(void **state)
{
	static const struct {
		const char *content;
		int expected;
		const char *message;
	} rows[] = {
		{ "format=ptd-snapshot-2\n", -EOPNOTSUPP,
		  "begins with format=ptd-snapshot-2; this program reads format=ptd-snapshot-1" },
		{ "host=here\nformat=ptd-snapshot-1\n", -EOPNOTSUPP, "begins with host=here" },
		{ "", -EBADMSG, "manifest is empty" },
		{ "format=ptd-snapshot-1\nhere\n", -EBADMSG,
		  "manifest line 2: expected key=value" },
		{ "format=ptd-snapshot-1\nrealtime_offset_ns=1s\n", -EBADMSG,
		  "realtime_offset_ns=1s: expected a number" },
		{ "format=ptd-snapshot-1\nrealtime_offset_ns=\n", -EBADMSG, "expected a number" },
		{ "format=ptd-snapshot-1\nrealtime_offset_ns=99999999999999999999\n", -EBADMSG,
		  "expected a number" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		tempdir_put(dir, "manifest", rows[i].content, strlen(rows[i].content));
		refuses(dir, true, rows[i].expected, rows[i].message);
	}
}

/* A directory of perf's own: no manifest, no sums. */
static void plain_directory(void **state)
{
	(void)state;
	assert_int_equal(remove(path_of("manifest")), 0);
	assert_int_equal(remove(path_of("SHA256SUMS")), 0);
	opens(dir, false, 0);
	assert_int_equal(remove(path_of("data")), 0);
	refuses(dir, false, -ENOENT, "/data: No such file or directory");
}

/* A child writes what was built to @fd, in small parts, and exits. */
static pid_t feed(int fd)
{
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child > 0)
		return child;
	for (size_t at = 0; at < b.size; at += 100)
		if (write(fd, b.bytes + at, b.size - at < 100 ? b.size - at : 100) < 0)
			_exit(1);
	_exit(0);
}

static void pipes(void **state)
{
	int ends[2], status, saved = dup(STDIN_FILENO), fifo;

	(void)state;
	for (int form = 0; form < 2; form++) {
		perfbuild_example(&b, form);
		assert_int_equal(pipe(ends), 0);
		assert_true(feed(ends[1]) > 0);
		close(ends[1]);
		assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
		close(ends[0]);
		opens("-", false, 0);
		assert_true(wait(&status) > 0 && status == 0);

		assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
		/* Both ends, so that neither waits for the other to open it. */
		fifo = open(path_of("fifo"), O_RDWR | O_CLOEXEC);
		assert_true(feed(fifo) > 0);
		assert_true(wait(&status) > 0 && status == 0);
		if (fork() == 0) {
			close(fifo);
			opens(path_of("fifo"), false, 0);
			_exit(0);
		}
		/* It ends when nobody can write to it any more. */
		while (access(path_of("fifo"), F_OK) == 0 && waitpid(-1, &status, WNOHANG) == 0)
			if (fifo >= 0 && usleep(100000) == 0)
				fifo = fd_close(fifo);
		assert_int_equal(status, 0);
		unlink(path_of("fifo"));
	}
	/* A file as standard input is none. */
	tempdir_put(dir, "file", b.bytes, b.size);
	assert_true(dup2(open(path_of("file"), O_RDONLY | O_CLOEXEC), STDIN_FILENO) == 0);
	opens("-", false, 0);
	dup2(saved, STDIN_FILENO);
}

/* perf record --threads: the records lie in files of their own. */
static void several_files(void **state)
{
	const uint64_t feature[] = { PERFABI_FEATURE_DIR_FORMAT, 1 };
	const size_t first = PERFBUILD_FIRST;

	(void)state;
	assert_int_equal(remove(path_of("manifest")), 0);
	assert_int_equal(remove(path_of("SHA256SUMS")), 0);
	perfbuild_example(&b, false);
	tempdir_put(dir, "data.0", b.bytes + first, b.size - first - 16 - 24);
	tempdir_put(dir, "data.1", "", 0);
	/* It belongs to the others only if there is none missing in between. */
	tempdir_put(dir, "data.3", "junk", 4);
	opens(dir, false, 0);

	perfbuild_begin(&b, false);
	perfbuild_record(&b, PERFABI_HEADER_FEATURE, 0, feature, sizeof(feature), NULL);
	perfbuild_end(&b);
	tempdir_put(dir, "data", b.bytes, b.size);
	opens(dir, false, 0);
	tempdir_put(dir, "data.1", "junk", 4);
	opens(dir, false, 0);
	tempdir_put(dir, "data.1", "\0\0\0\0\0\0\0", 8);
	refuses(dir, false, -EBADMSG, "/data.1: ");
	assert_int_equal(remove(path_of("data.0")), 0);
	refuses(dir, false, -ENODATA, "/data: recorded by several threads");
}

static void other_things(void **state)
{
	(void)state;
	refuses("/no/such/thing", false, -ENOENT, "No such file or directory");
	refuses("/dev/null", false, -EINVAL, "not a regular file");
	refuses(path_of("manifest"), false, -EBADMSG, "does not begin with PERFILE2");
	tempdir_put(dir, "empty", "", 0);
	refuses(path_of("empty"), false, -EBADMSG, "it has only 0 bytes");
	assert_null(trace_free(NULL));
}

#define test(f) cmocka_unit_test_setup_teardown(f, make_snapshot, remove_snapshot)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(whole), test(damaged),       test(bad_manifest), test(plain_directory),
		test(pipes), test(several_files), test(other_things),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
