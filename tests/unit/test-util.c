/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small things of util/ that everything stands on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/arena.h"
#include "util/buildid.h"
#include "util/effort.h"
#include "util/map.h"
#include "util/mapfile.h"
#include "util/number.h"
#include "util/peeruser.h"
#include "util/sha256.h"
#include "util/suffix.h"
#include "util/textfile.h"
#include "util/vec.h"

static void vec_grows_and_keeps(void **state)
{
	VEC(uint32_t) v = {};

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(vec_push(&v, i), 0);
	assert_int_equal(v.n, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(v.items[i], i);

	assert_int_equal(vec_reserve(&v, SIZE_MAX / 2), -ENOMEM);
	assert_int_equal(v.n, 1000);
	vec_deinit(&v);
	assert_null(v.items);
}

static void vec_bisects(void **state)
{
	VEC(uint32_t) v = {};

	(void)state;
	assert_int_equal(vec_bisect(&v, item, *item < 3), 0);
	for (uint32_t i = 1; i <= 9; i += 2) {
		assert_int_equal(vec_push(&v, i), 0);
		for (uint32_t key = 0; key <= 10; key++) {
			size_t n = 0;

			while (n < v.n && v.items[n] < key)
				n++;
			assert_int_equal(vec_bisect(&v, item, *item < key), n);
		}
	}
	vec_deinit(&v);
}

static void map_finds_what_was_put(void **state)
{
	struct map map = {};

	(void)state;
	assert_null(map_get(&map, 0));
	/* Keys whose low bits are all the same, as page addresses are, and zero. */
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(map_put(&map, i << 12, i), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_non_null(map_get(&map, i << 12));
		assert_int_equal(*map_get(&map, i << 12), i);
		assert_null(map_get(&map, (i << 12) + 1));
	}

	assert_int_equal(map_put(&map, 1 << 12, 77), 0);
	assert_int_equal(*map_get(&map, 1 << 12), 77);
	assert_int_equal(map.n_used, 5000);
	map_deinit(&map);
}

static void arena_never_moves(void **state)
{
	struct arena arena = {};
	char *strings[500], *big;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		strings[i] =
		    arena_strdup(&arena, "a string of some length, many of which fill a chunk");
		assert_non_null(strings[i]);
		assert_int_equal((uintptr_t)strings[i] % 16, 0);
	}
	big = arena_alloc(&arena, 1 << 20);
	assert_non_null(big);
	for (size_t i = 0; i < 1 << 20; i++)
		assert_int_equal(big[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		assert_string_equal(strings[i],
				    "a string of some length, many of which fill a chunk");
	assert_null(arena_alloc(&arena, SIZE_MAX));
	arena_deinit(&arena);
}

static void mapfile_takes_regular_files_only(void **state)
{
	char dir[TEMPDIR_SIZE], fifo[128], file[128];
	struct mapfile m = {};
	int fd;

	(void)state;
	tempdir_make("util", dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);

	assert_int_equal(mapfile_read(&m, AT_FDCWD, file), 0); /* empty */
	assert_int_equal(m.size, 0);
	mapfile_deinit(&m);
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(mapfile_read(&m, AT_FDCWD, file), 0);
	assert_int_equal(m.size, 5);
	assert_memory_equal(m.bytes, "hello", 5);
	mapfile_deinit(&m);

	assert_int_equal(mapfile_read(&m, AT_FDCWD, fifo), -EINVAL); /* and does not wait */
	assert_int_equal(mapfile_read(&m, AT_FDCWD, dir), -EISDIR);
	assert_int_equal(mapfile_read(&m, AT_FDCWD, "/dev/zero"), -EINVAL);
	assert_int_equal(mapfile_read(&m, AT_FDCWD, "/no/such/file"), -ENOENT);
	assert_null(m.bytes);

	close(fd);
	tempdir_remove(dir);
}

static void sha256_of_known_bytes(void **state)
{
	static const struct {
		const char *bytes, *expected;
	} rows[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	};
	char hex[SHA256_HEX_SIZE];
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		FILE *f = tmpfile();

		assert_non_null(f);
		fputs(rows[i].bytes, f);
		fflush(f);
		assert_int_equal(sha256_fd(fileno(f), NULL, NULL, hex, &size), 0);
		assert_string_equal(hex, rows[i].expected);
		assert_int_equal(size, strlen(rows[i].bytes));
		fclose(f);
	}
	assert_int_equal(sha256_fd(-1, NULL, NULL, hex, &size), -EBADF);
}

/* Of a file without end, too. */
static void sha256_keeps_to_the_effort(void **state)
{
	const atomic_bool asked = true, not_asked = false;
	const struct {
		struct effort effort;
		bool endless;
		int expected;
	} rows[] = {
		{ { .size_max = 3, .cancel = &not_asked }, false, 0 },
		{ { .size_max = 2 }, false, -EFBIG },
		{ { .size_max = 0 }, false, -EFBIG },
		{ { .size_max = UINT64_MAX, .cancel = &asked }, false, -ECANCELED },
		{ { .size_max = UINT64_MAX, .until_ns = 1 }, false, -ETIMEDOUT },
		{ { .size_max = 512 << 20, .cancel = &not_asked }, true, -EFBIG },
		{ { .size_max = UINT64_MAX, .cancel = &asked }, true, -ECANCELED },
		{ { .size_max = UINT64_MAX, .until_ns = clock_ns(CLOCK_MONOTONIC) + 100000000 },
		  true,
		  -ETIMEDOUT },
	};
	const int endless = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	assert_true(endless >= 0);
	fputs("abc", f);
	fflush(f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char hex[SHA256_HEX_SIZE] = "untouched";
		const int fd = rows[i].endless ? endless : fileno(f);
		uint64_t size = 99;

		assert_int_equal(sha256_fd(fd, &rows[i].effort, NULL, hex, &size),
				 rows[i].expected);
		if (rows[i].expected < 0)
			assert_true(size == 99 && strcmp(hex, "untouched") == 0);
	}
	close(endless);
	fclose(f);
}

/* The judge is readelf: the test program itself has a build-id if its linker makes them. */
static void buildid_is_what_readelf_says(void **state)
{
	char expected[128] = "", hex[BUILDID_HEX_MAX];
	struct buildid id = {};
	FILE *judge;
	int fd;

	(void)state;
	judge = popen("readelf -n /bin/true 2>/dev/null | sed -n 's/.*Build ID: //p'", "r");
	assert_non_null(judge);
	if (!fgets(expected, sizeof(expected), judge))
		expected[0] = '\0';
	pclose(judge);
	expected[strcspn(expected, "\n")] = '\0';
	if (!expected[0]) {
		print_message("no readelf to judge by\n");
		skip();
	}

	fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(buildid_read(fd, &id), 0);
	close(fd);
	assert_string_equal(buildid_hex(&id, hex), expected);
	assert_true(buildid_equal(&id, &id));

	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC); /* no ELF file */
	assert_true(fd >= 0);
	assert_int_equal(buildid_read(fd, &id), 0);
	close(fd);
	assert_int_equal(id.size, 0);
}

static void peeruser_says_who_connected(void **state)
{
	int pair[2], ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(peeruser_is(pair[i], geteuid()));
		assert_false(peeruser_is(pair[i], geteuid() + 1));
		assert_false(peeruser_is(ends[i], geteuid())); /* no socket */
		(void)close(pair[i]);
		(void)close(ends[i]);
	}
	assert_false(peeruser_is(-1, geteuid()));
}

static void suffixes(void **state)
{
	(void)state;
	assert_true(suffix_is("a.zip", ".zip"));
	assert_true(suffix_is(".zip", ".zip"));
	assert_true(suffix_is("a", ""));
	assert_false(suffix_is("a.zip.b", ".zip"));
	assert_false(suffix_is("zip", ".zip"));
	assert_false(suffix_is("", ".zip"));
}

static void numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		bool plain, bytes; /* whether it can be parsed so */
		uint64_t number;
	} rows[] = {
		{ "0", 0, true, true, 0 },
		{ "10", 10, true, true, 10 },
		{ "10", 9, false, false, 0 },
		{ "18446744073709551615", UINT64_MAX, true, true, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, false, false, 0 },
		{ "", 9, false, false, 0 },
		{ "-1", UINT64_MAX, false, false, 0 },
		{ "+1", 9, false, false, 0 },
		{ " 1", 9, false, false, 0 },
		{ "1 ", 9, false, false, 0 },
		{ "0x1", 9, false, false, 0 },
		{ "3K", UINT64_MAX, false, true, 3 << 10 },
		{ "3M", UINT64_MAX, false, true, 3 << 20 },
		{ "3G", UINT64_MAX, false, true, UINT64_C(3) << 30 },
		{ "3T", UINT64_MAX, false, true, UINT64_C(3) << 40 },
		{ "1K", 1024, false, true, 1024 },
		{ "1K", 1023, false, false, 0 },
		{ "16777216T", UINT64_MAX, false, false, 0 },
		{ "K", UINT64_MAX, false, false, 0 },
		{ "1k", UINT64_MAX, false, false, 0 },
		{ "1KB", UINT64_MAX, false, false, 0 },
		{ "1 K", UINT64_MAX, false, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t n = 7, bytes = 7;

		print_message("  \"%s\"\n", rows[i].text);
		assert_int_equal(number_parse(rows[i].text, rows[i].max, &n),
				 rows[i].plain ? 0 : -EINVAL);
		assert_int_equal(n, rows[i].plain ? rows[i].number : 7);
		assert_int_equal(number_parse_bytes(rows[i].text, rows[i].max, &bytes),
				 rows[i].bytes ? 0 : -EINVAL);
		assert_int_equal(bytes, rows[i].bytes ? rows[i].number : 7);
	}
}

static void textfile_reads_what_fits(void **state)
{
	char dir[TEMPDIR_SIZE], text[8];
	int fd;

	(void)state;
	tempdir_make("util", dir);
	tempdir_put_text(dir, "file", "a\nb\n");
	fd = open(dir, O_PATH | O_CLOEXEC);
	assert_int_equal(textfile_read(fd, "file", text, sizeof(text)), 4);
	assert_string_equal(text, "a\nb\n");
	assert_int_equal(textfile_read(fd, "file", text, 3), 2);
	assert_string_equal(text, "a\n");
	assert_int_equal(textfile_read(fd, "none", text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");
	memset(text, 'x', sizeof(text));
	assert_int_equal(textfile_read(fd, ".", text, sizeof(text)), -EISDIR);
	assert_string_equal(text, "");
	(void)close(fd);
	tempdir_remove(dir);
}

static void textfile_finds_the_field(void **state)
{
	char dir[TEMPDIR_SIZE], path[TEMPDIR_SIZE + 8];

	(void)state;
	tempdir_make("util", dir);
	tempdir_put_text(dir, "file", "Other: 3\nMine:\t0012\nMine: 7\nWord: x\n");
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(textfile_field(path, "Mine:", 10), 12);
	assert_int_equal(textfile_field(path, "Mine:", 16), 0x12);
	assert_int_equal(textfile_field(path, "Word:", 10), 0);
	assert_int_equal(textfile_field(path, "None:", 10), 0);
	assert_int_equal(textfile_field(dir, "Mine:", 10), 0);
	tempdir_remove(dir);
}

/* What could not be added is asked for once more. */
static int add_item(void *userdata)
{
	struct items {
		struct map map;
		VEC(uint64_t) v;
	} items = {};
	uint64_t *item = map_item(&items.map, 7, &items.v, 70);
	const int r = item ? 0 : -ENOMEM;

	(void)userdata;
	if (!item)
		item = map_item(&items.map, 7, &items.v, 70);
	assert_non_null(item);
	assert_ptr_equal(item, &items.v.items[0]);
	assert_int_equal(*item, 70);
	assert_int_equal(items.v.n, 1);
	assert_ptr_equal(map_item(&items.map, 7, &items.v, 71), item);
	map_deinit(&items.map);
	vec_deinit(&items.v);
	return r;
}

static void nothing_to_check(void *userdata)
{
	(void)userdata;
}

static void an_item_without_memory(void **state)
{
	(void)state;
	failing_each(add_item, nothing_to_check, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(vec_grows_and_keeps),
		cmocka_unit_test(vec_bisects),
		cmocka_unit_test(map_finds_what_was_put),
		cmocka_unit_test(arena_never_moves),
		cmocka_unit_test(mapfile_takes_regular_files_only),
		cmocka_unit_test(sha256_of_known_bytes),
		cmocka_unit_test(sha256_keeps_to_the_effort),
		cmocka_unit_test(buildid_is_what_readelf_says),
		cmocka_unit_test(peeruser_says_who_connected),
		cmocka_unit_test(suffixes),
		cmocka_unit_test(numbers),
		cmocka_unit_test(textfile_reads_what_fits),
		cmocka_unit_test(textfile_finds_the_field),
		cmocka_unit_test(an_item_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
