/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Container: the same bytes in every kind of file, read in pieces of several sizes; components of a
 * zip file; and files that are cut off or damaged.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <lz4frame.h>
#include <minizip/zip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "decoder/drmemtrace/container.h"
#include "tests/lib/tempdir.h"

#define SIZE 100000

static char dir[TEMPDIR_SIZE];
static uint8_t bytes[SIZE];

static const char *const names[] = { "plain.trace", "gz.trace.gz", "lz4.trace.lz4", "zip.trace.zip",
				     "two.trace.gz" };

static char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make_gz(void)
{
	gzFile gz = gzopen(path_of("gz.trace.gz"), "wb");

	assert_non_null(gz);
	assert_int_equal(gzwrite(gz, bytes, SIZE), SIZE);
	assert_int_equal(gzclose(gz), Z_OK);
	/* Two streams, one behind the other. */
	for (size_t i = 0; i < 2; i++) {
		gz = gzopen(path_of("two.trace.gz"), i == 0 ? "wb" : "ab");
		assert_non_null(gz);
		assert_int_equal(gzwrite(gz, bytes + i * SIZE / 2, SIZE / 2), SIZE / 2);
		assert_int_equal(gzclose(gz), Z_OK);
	}
}

/* Two frames, one behind the other. */
static void make_lz4(void)
{
	const size_t half = SIZE / 2, max = 2 * LZ4F_compressFrameBound(SIZE, NULL);
	uint8_t *out = malloc(max);
	size_t n;

	assert_non_null(out);
	n = LZ4F_compressFrame(out, max, bytes, half, NULL);
	n += LZ4F_compressFrame(out + n, max - n, bytes + half, SIZE - half, NULL);
	tempdir_put(dir, "lz4.trace.lz4", out, n);
	free(out);
}

/* Components of a third each, and an empty one in between. */
static void make_zip(void)
{
	const size_t sizes[] = { SIZE / 3, SIZE / 3, 0, SIZE - 2 * (SIZE / 3) };
	zipFile zip = zipOpen64(path_of("zip.trace.zip"), APPEND_STATUS_CREATE);
	size_t at = 0;

	assert_non_null(zip);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "chunk.%08zu", i);
		assert_int_equal(zipOpenNewFileInZip64(zip, name, NULL, NULL, 0, NULL, 0, NULL,
						       Z_DEFLATED, 1, 1),
				 ZIP_OK);
		assert_int_equal(zipWriteInFileInZip(zip, bytes + at, (unsigned int)sizes[i]),
				 ZIP_OK);
		assert_int_equal(zipCloseFileInZip(zip), ZIP_OK);
		at += sizes[i];
	}
	assert_int_equal(zipClose(zip, NULL), ZIP_OK);
}

static int make_files(void **state)
{
	uint32_t x = 1;

	(void)state;
	tempdir_make("container", dir);
	/* Something that compresses, but not to nothing. */
	for (size_t i = 0; i < SIZE; i++) {
		x = x * 1103515245 + 12345;
		bytes[i] = (uint8_t)(x >> 16 & 15);
	}
	tempdir_put(dir, "plain.trace", bytes, SIZE);
	make_gz();
	make_lz4();
	make_zip();
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	tempdir_remove(dir);
	return 0;
}

/* Read all of the file, @step bytes at once. Return: 0 or the error; what came is as written. */
static int read_all(const char *name, size_t step, size_t *ret_n, uint64_t *ret_component)
{
	struct container *c = NULL;
	uint8_t *got;
	size_t n;
	int r;

	*ret_n = 0;
	*ret_component = 0;
	r = container_open(path_of(name), &c);
	if (r < 0)
		return r;
	got = malloc(step);
	assert_non_null(got);
	do {
		r = container_read(c, got, step, &n);
		if (r < 0)
			break;
		assert_true(n <= step && *ret_n + n <= SIZE);
		assert_memory_equal(got, bytes + *ret_n, n);
		*ret_n += n;
		if (n > 0)
			*ret_component = container_component(c);
	} while (n > 0);
	free(got);
	assert_null(container_free(c));
	return r;
}

static void all_kinds(void **state)
{
	static const size_t steps[] = { 1, 7, 4096, SIZE, 2 * SIZE };
	uint64_t component;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
			print_message("  %s by %zu\n", names[i], steps[k]);
			assert_int_equal(read_all(names[i], steps[k], &n, &component), 0);
			assert_int_equal(n, SIZE);
			assert_int_equal(component, i == 3 ? 3 : 0);
		}
	}
}

/* A read ends where a component does. */
static void components(void **state)
{
	static const struct {
		size_t n;
		uint64_t component;
	} reads[] = { { SIZE / 3, 0 }, { SIZE / 3, 1 }, { SIZE - 2 * (SIZE / 3), 3 } };
	struct container *c = NULL;
	uint8_t *got = malloc(SIZE);
	size_t n;

	(void)state;
	assert_non_null(got);
	assert_int_equal(container_open(path_of("zip.trace.zip"), &c), 0);
	for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
		assert_int_equal(container_read(c, got, SIZE, &n), 0);
		assert_int_equal(n, reads[i].n);
		assert_int_equal(container_component(c), reads[i].component);
	}
	assert_int_equal(container_read(c, got, SIZE, &n), 0);
	assert_int_equal(n, 0);
	container_free(c);
	free(got);
}

/* Cut off anywhere, a compressed file is damaged; a plain one is only shorter. */
static void cut_off(void **state)
{
	(void)state;
	for (size_t i = 1; i < ARRAY_LEN(names); i++) {
		char *whole, name[32];
		uint64_t component;
		size_t size, n;

		assert_int_equal(container_read_all(path_of("plain.trace"), SIZE, &whole, &size),
				 0);
		assert_int_equal(size, SIZE);
		free(whole);
		{
			FILE *f = fopen(path_of(names[i]), "re");

			assert_non_null(f);
			whole = malloc(SIZE);
			assert_non_null(whole);
			size = fread(whole, 1, SIZE, f);
			assert_int_equal(fclose(f), 0);
		}
		(void)snprintf(name, sizeof(name), "cut-%s", names[i]);
		for (size_t cut = strstr(names[i], "gz") ? 2 : 5; cut < size;
		     cut += cut < 200 || cut + 300 > size ? 1 : 997) {
			tempdir_put(dir, name, whole, cut);
			if (read_all(name, 4096, &n, &component) != -EBADMSG)
				/* Between the two frames or streams. */
				assert_true((strstr(name, "lz4") || strstr(name, "two")) &&
					    n == SIZE / 2);
		}
		free(whole);
	}
}

static void refused(void **state)
{
	uint64_t component;
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(read_all("none.zip", 1, &n, &component), -ENOENT);
	assert_int_equal(read_all("x.sz", 1, &n, &component), -EOPNOTSUPP);
	tempdir_put(dir, "plain.zip", bytes, SIZE);
	assert_int_equal(read_all("plain.zip", 1, &n, &component), -EBADMSG);
	tempdir_put(dir, "plain.lz4", bytes, SIZE);
	assert_int_equal(read_all("plain.lz4", 1, &n, &component), -EBADMSG);
	tempdir_put(dir, "byte.gz", "\x1f\x8b", 2);
	assert_int_equal(read_all("byte.gz", 1, &n, &component), -EBADMSG);
	tempdir_put(dir, "empty.gz", "", 0);
	assert_int_equal(read_all("empty.gz", 1, &n, &component), 0);
	assert_int_equal(n, 0);
	tempdir_put(dir, "empty.lz4", "", 0);
	assert_int_equal(read_all("empty.lz4", 1, &n, &component), 0);
	assert_int_equal(n, 0);
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	assert_true(read_all("fifo", 1, &n, &component) < 0);
	assert_true(read_all(".", 1, &n, &component) < 0);
	assert_int_equal(container_read_all(path_of("plain.trace"), SIZE - 1, &text, &n), -EFBIG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds),
		cmocka_unit_test(components),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
