/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Code map: what a space had where, at any time, in any order of questions. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decoder/codemap.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"

static struct object *a, *b;

static struct space *make(const struct object *late)
{
	struct space *space = NULL;

	assert_int_equal(space_new(0, NULL, 0, &space), 0);
	assert_int_equal(space_map(space, &(struct mapping){ .time = 10,
							     .start = 0x1000,
							     .size = 0x2000,
							     .offset = 0x300,
							     .object = a }),
			 0);
	assert_int_equal(
	    space_map(
		space,
		&(struct mapping){ .time = 20, .start = 0x2000, .size = 0x1000, .object = late }),
	    0);
	return space;
}

static void finds(void **state)
{
	struct objects *objects = NULL;
	struct space *one, *other;
	const struct {
		int space;
		uint64_t t, ip;
		struct object **object;
		uint64_t address;
	} rows[] = {
		{ 0, 15, 0x1000, &a, 0x300 }, { 0, 15, 0x2fff, &a, 0x22ff },
		{ 0, 20, 0x2004, &b, 0x4 },   { 0, 20, 0x1fff, &a, 0x12ff },
		{ 1, 30, 0x2004, &a, 0x4 },   { 0, 10, 0x2004, &a, 0x1304 },
		{ 0, 9, 0x1000, NULL, 0 },    { 0, 30, 0xfff, NULL, 0 },
		{ 0, 30, 0x3000, NULL, 0 },   { 1, 30, UINT64_MAX, NULL, 0 },
	};
	struct codemap map = {};

	(void)state;
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(objects_add_synthetic(objects, "a", &a), 0);
	assert_int_equal(objects_add_synthetic(objects, "b", &b), 0);
	one = make(b);
	other = make(a);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct object *object = b;
		uint64_t address = 77;

		assert_int_equal(codemap_find(&map, rows[i].space ? other : one, rows[i].t,
					      rows[i].ip, &object, &address),
				 0);
		assert_ptr_equal(object, rows[i].object ? *rows[i].object : NULL);
		assert_int_equal(address, rows[i].address);
	}
	codemap_deinit(&map);
	space_free(one);
	space_free(other);
	objects_free(objects);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(finds) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
