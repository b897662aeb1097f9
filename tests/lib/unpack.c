/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/unpack.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
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
