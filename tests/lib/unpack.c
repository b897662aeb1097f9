/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/unpack.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <lz4frame.h>
#include <minizip/unzip.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "util/suffix.h"

#define STEP ((size_t)1 << 20)

static void unpack_zip(struct unpacked *u, const char *path)
{
	unzFile zip = unzOpen64(path);
	char name[256];
	int n;

	if (!zip)
		fail_msg("%s: no zip file", path);
	for (n = unzGoToFirstFile(zip); n == UNZ_OK; n = unzGoToNextFile(zip)) {
		assert_int_equal(
		    unzGetCurrentFileInfo64(zip, NULL, name, sizeof(name), NULL, 0, NULL, 0),
		    UNZ_OK);
		assert_int_equal(vec_push(&u->names, strdup(name)), 0);
		assert_int_equal(unzOpenCurrentFile(zip), UNZ_OK);
		do {
			assert_int_equal(vec_reserve(&u->bytes, STEP), 0);
			n = unzReadCurrentFile(zip, u->bytes.items + u->bytes.n, STEP);
			assert_true(n >= 0);
			u->bytes.n += (size_t)n;
		} while (n > 0);
		/* This compares the CRC. */
		assert_int_equal(unzCloseCurrentFile(zip), UNZ_OK);
		assert_int_equal(vec_push(&u->ends, u->bytes.n), 0);
	}
	assert_int_equal(n, UNZ_END_OF_LIST_OF_FILE);
	assert_int_equal(unzClose(zip), UNZ_OK);
}

static void unpack_lz4(struct unpacked *u, const char *path)
{
	FILE *f = fopen(path, "re");
	static uint8_t packed[1 << 16];
	LZ4F_dctx *context;
	size_t n, hint = 1;

	assert_non_null(f);
	assert_false(LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)));
	while ((n = fread(packed, 1, sizeof(packed), f)) > 0) {
		for (size_t done = 0; done < n;) {
			size_t n_in = n - done, n_out = STEP;

			assert_int_equal(vec_reserve(&u->bytes, STEP), 0);
			hint = LZ4F_decompress(context, u->bytes.items + u->bytes.n, &n_out,
					       packed + done, &n_in, NULL);
			assert_false(LZ4F_isError(hint));
			done += n_in;
			u->bytes.n += n_out;
		}
	}
	assert_int_equal(hint, 0);
	(void)LZ4F_freeDecompressionContext(context);
	fclose(f);
}

static void unpack_gzip(struct unpacked *u, const char *path)
{
	gzFile gz = gzopen(path, "rbe");
	int n;

	assert_non_null(gz);
	do {
		assert_int_equal(vec_reserve(&u->bytes, STEP), 0);
		n = gzread(gz, u->bytes.items + u->bytes.n, STEP);
		assert_true(n >= 0);
		u->bytes.n += (size_t)n;
	} while (n > 0);
	assert_int_equal(gzclose(gz), Z_OK);
}

struct unpacked unpack(const char *path)
{
	struct unpacked u = {};

	if (suffix_is(path, ".zip")) {
		unpack_zip(&u, path);
		return u;
	}
	if (suffix_is(path, ".lz4"))
		unpack_lz4(&u, path);
	else
		unpack_gzip(&u, path);
	assert_int_equal(vec_push(&u.ends, u.bytes.n), 0);
	return u;
}

void unpacked_deinit(struct unpacked *unpacked)
{
	for (size_t i = 0; i < unpacked->names.n; i++)
		free(unpacked->names.items[i]);
	vec_deinit(&unpacked->names);
	vec_deinit(&unpacked->ends);
	vec_deinit(&unpacked->bytes);
}
