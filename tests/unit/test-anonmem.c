/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A file of memory, and the same spoiled one field at a time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/jit/anonmem.h"
#include "ptd/snapshot.h"
#include "tests/lib/tempdir.h"

#define PIECES 3u

/* The pieces of two processes, not in their order. */
struct file {
	struct ptd_pages_header header;
	struct {
		struct ptd_pages_piece piece;
		char bytes[8];
	} all[PIECES];
};

static const struct file good = {
	.header = { .magic = PTD_PAGES_MAGIC, .version = PTD_PAGES_VERSION },
	.all = {
		{ { .pid = 8, .address = 0x2000, .size = 8 }, "second.." },
		{ { .pid = 7, .address = 0x1000, .size = 8 }, "another." },
		{ { .pid = 8, .address = 0x1000, .size = 8 }, "first..." },
	},
};

/* One field with another value; @cut: bytes that are missing at the end. */
static void every_field(void **state)
{
	static const struct {
		const char *name;
		size_t at, size, cut;
		uint64_t value;
		size_t n; /* pieces that are left */
	} rows[] = {
		{ "good", 0, 0, 0, 0, 3 },
		{ "no magic", offsetof(struct file, header.magic), 8, 0, 0, 0 },
		{ "another version", offsetof(struct file, header.version), 4, 0, 2, 0 },
		{ "no bytes", offsetof(struct file, all[1].piece.size), 8, 0, 0, 1 },
		{ "too many bytes", offsetof(struct file, all[2].piece.size), 8, 0, 9, 2 },
		{ "very many bytes", offsetof(struct file, all[1].piece.size), 8, 0, UINT64_MAX,
		  1 },
		{ "beyond all addresses", offsetof(struct file, all[1].piece.address), 8, 0,
		  UINT64_MAX - 6, 1 },
		{ "to the last address", offsetof(struct file, all[1].piece.address), 8, 0,
		  UINT64_MAX - 7, 3 },
		{ "overlapping", offsetof(struct file, all[0].piece.address), 8, 0, 0x1007, 2 },
		{ "cut off in the bytes", 0, 0, 1, 0, 2 },
		{ "cut off in a piece", 0, 0, 9, 0, 2 },
		{ "cut off in the header", 0, 0, sizeof(good) - 15, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char dir[TEMPDIR_SIZE];
		struct file file = good;
		struct perfmaps perfmaps;
		struct memfiles files;
		struct anonmem memory;
		struct objects *objects;

		print_message("  %s\n", rows[i].name);
		memcpy((char *)&file + rows[i].at, &rows[i].value, rows[i].size);
		tempdir_make("anonmem", dir);
		tempdir_put(dir, PTD_SNAPSHOT_MEM_PAGES, &file, sizeof(file) - rows[i].cut);
		assert_int_equal(objects_new(dir, &objects), 0);
		perfmaps_init(&perfmaps, dir);
		assert_int_equal(memfiles_init(&files, objects), 0);
		assert_int_equal(anonmem_init(&memory, &files, &perfmaps), 0);
		assert_int_equal(memory.pieces.n, rows[i].n);
		if (i == 0) {
			const struct anonmem_piece *m = anonmem_find(&memory, 8, 0);

			assert_int_equal(m->start, 0x1000);
			assert_memory_equal(object_bytes(m->object, m->offset, 8), "first...", 8);
			assert_int_equal(object_address(m->object, m->offset + 3), 0x1003);
			m = anonmem_find(&memory, 8, 0x1008);
			assert_memory_equal(object_bytes(m->object, m->offset, 8), "second..", 8);
			assert_int_equal(object_address(m->object, m->offset + 3), 0x2003);
			assert_null(anonmem_find(&memory, 7, 0x1008));
		}
		anonmem_deinit(&memory);
		memfiles_deinit(&files);
		perfmaps_deinit(&perfmaps);
		objects_free(objects);
		tempdir_remove(dir);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
