/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lines of objects.map: whatever the path, what is written is read back, and is one line. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/objectsmap.h"

static void check(const char *id, const char *path)
{
	_cleanup_(freep) char *text = NULL;
	const char *read_id, *read_path;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	objectsmap_put(f, id, path);
	assert_int_equal(fclose(f), 0);
	assert_ptr_equal(strchr(text, '\n'), text + size - 1);
	text[size - 1] = '\0';
	assert_int_equal(objectsmap_split(text, &read_id, &read_path), 0);
	assert_string_equal(read_id, id);
	assert_string_equal(read_path, path);
}

static void round_trips(void **state)
{
	static const char *const paths[] = {
		"/bin/ls",   "[vdso]",          "/a\nb",        "/a\\012b", "/a\\\n\\b", "\n",
		"\\",        "/\\134\\012",     "/a\\",         "/a\\0",    "/a\\01",    "/a\t\tb",
		"/a\\400\\", "/a b\r\x7f\xff/", "/a (deleted)",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		check("sha256:ab", paths[i]);
	/* Every byte, alone and between what could be digits. */
	for (int byte = 1; byte < 256; byte++) {
		const char alone[] = { '/', (char)byte, '\0' };
		const char between[] = { '/',        '\\', (char)byte, '1', '2',
					 (char)byte, '0',  '1',        '2', '\0' };

		check("-", alone);
		check("0123", between);
	}
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void missing(void **state)
{
	static const struct {
		const char *id;
		bool is_missing;
		const char *hash;
	} rows[] = {
		{ "-", true, "" },
		{ "- it is too large", true, "" },
		{ "- sha256:" HEX64, true, HEX64 },
		{ "- sha256:" HEX64 " no room", true, HEX64 },
		{ "- sha256:" HEX64 "0 no room", true, "" },
		{ "- sha256:" HEX64 "x", true, "" },
		{ "- sha256:01 no room", true, "" },
		{ "-sha256:" HEX64, false, "" },
		{ "sha256:" HEX64, false, "" },
		{ "0123", false, "" },
	};
	char hash[SHA256_HEX_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  \"%s\"\n", rows[i].id);
		assert_int_equal(objectsmap_is_missing(rows[i].id, hash), rows[i].is_missing);
		assert_string_equal(hash, rows[i].hash);
	}
}

static void splits(void **state)
{
	static const struct {
		const char *line, *id, *path; /* NULL: it is none */
	} rows[] = {
		{ "ab\t/x", "ab", "/x" },
		{ "ab\t/x\\012y", "ab", "/x\ny" },
		/* Of older snapshots, which wrote backslashes as they are. */
		{ "ab\t/x\\y\\", "ab", "/x\\y\\" },
		{ "ab\t/x\\000", "ab", "/x\\000" },
		{ "ab\t/x\\777", "ab", "/x\\777" },
		{ "ab\t/x\\12", "ab", "/x\\12" },
		{ "", NULL, NULL },
		{ "ab /x", NULL, NULL },
		{ "\t/x", NULL, NULL },
		{ "ab\t", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *line = strdup(rows[i].line);
		const char *id = NULL, *path = NULL;

		print_message("  \"%s\"\n", line);
		assert_int_equal(objectsmap_split(line, &id, &path), rows[i].id ? 0 : -EBADMSG);
		if (rows[i].id) {
			assert_string_equal(id, rows[i].id);
			assert_string_equal(path, rows[i].path);
		} else {
			assert_null(id);
			assert_null(path);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(splits),
		cmocka_unit_test(missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
