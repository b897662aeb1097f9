/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Spaces over time, and what is visible of them at a generation. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/image/layout.h"
#include "decoder/image/space.h"
#include "decoder/util/filebytes.h"

static const struct object a = { .id = { .name = "a" }, .size = 0x10000 };
static const struct object b = { .id = { .name = "b" }, .state = OBJECT_MISSING };

static struct space *make(const struct space *parent, uint64_t time)
{
	struct space *s = NULL;

	assert_int_equal(space_new(7, parent, time, &s), 0);
	return s;
}

static void map(struct space *s, uint64_t time, uint64_t start, uint64_t size,
		const struct object *object, uint64_t offset)
{
	assert_int_equal(space_map(s, &(struct mapping){ .time = time,
							 .start = start,
							 .size = size,
							 .offset = offset,
							 .object = object }),
			 0);
}

static void generations_follow_time(void **state)
{
	_cleanup_(space_freep) struct space *s = make(NULL, 0);

	(void)state;
	map(s, 0, 0x1000, 0x1000, &a, 0);
	map(s, 10, 0x2000, 0x1000, &a, 0);
	map(s, 10, 0x3000, 0x1000, &a, 0);
	map(s, 20, 0x4000, 0x1000, &a, 0);
	assert_int_equal(space_id(s), 7);
	assert_int_equal(space_generation(s, 0), 1);
	assert_int_equal(space_generation(s, 9), 1);
	assert_int_equal(space_generation(s, 10), 3);
	assert_int_equal(space_generation(s, 20), 4);
	assert_int_equal(space_generation(s, UINT64_MAX), 4);
	assert_int_equal(space_next_change(s, 0), 10);
	assert_int_equal(space_next_change(s, 9), 10);
	assert_int_equal(space_next_change(s, 10), 20);
	assert_true(space_next_change(s, 20) == UINT64_MAX);
	assert_int_equal(space_mapping(s, 3)->start, 0x4000);
}

static void a_forked_space_is_a_copy_at_that_time(void **state)
{
	_cleanup_(space_freep) struct space *parent = make(NULL, 0), *child = NULL;

	(void)state;
	map(parent, 5, 0x1000, 0x1000, &a, 0);
	map(parent, 15, 0x2000, 0x1000, &a, 0);
	child = make(parent, 10);
	assert_int_equal(space_generation(child, UINT64_MAX), 1);
	map(child, 12, 0x2000, 0x1000, &b, 0);
	assert_ptr_equal(space_mapping(child, 1)->object, &b);
	assert_int_equal(space_generation(parent, UINT64_MAX), 2);
}

static void impossible_mappings_are_refused(void **state)
{
	_cleanup_(space_freep) struct space *s = make(NULL, 0);

	(void)state;
	assert_int_equal(space_map(s, &(struct mapping){ .start = 1, .size = 0 }), -EINVAL);
	assert_int_equal(space_map(s, &(struct mapping){ .start = 1, .size = UINT64_MAX }), 0);
	assert_int_equal(space_map(s, &(struct mapping){ .start = 2, .size = UINT64_MAX }),
			 -EINVAL);
}

/* Each row maps "old" pieces, then a new one over them, and says what is left. */
static void a_new_mapping_covers_older_ones(void **state)
{
	struct piece {
		uint64_t start, size, offset;
	};
	static const struct {
		const char *name;
		struct piece old[3], new;
		struct piece left[5];
	} rows[] = {
		{ "beside",
		  { { 0x1000, 0x1000, 0 } },
		  { 0x2000, 0x1000, 0x70 },
		  { { 0x1000, 0x1000, 0 }, { 0x2000, 0x1000, 0x70 } } },
		{ "below",
		  { { 0x3000, 0x1000, 0 } },
		  { 0x1000, 0x1000, 0x70 },
		  { { 0x1000, 0x1000, 0x70 }, { 0x3000, 0x1000, 0 } } },
		{ "the same",
		  { { 0x1000, 0x1000, 0 } },
		  { 0x1000, 0x1000, 0x70 },
		  { { 0x1000, 0x1000, 0x70 } } },
		{ "inside",
		  { { 0x1000, 0x3000, 0x100 } },
		  { 0x2000, 0x1000, 0x70 },
		  { { 0x1000, 0x1000, 0x100 },
		    { 0x2000, 0x1000, 0x70 },
		    { 0x3000, 0x1000, 0x2100 } } },
		{ "over the end",
		  { { 0x1000, 0x2000, 0 } },
		  { 0x2000, 0x2000, 0x70 },
		  { { 0x1000, 0x1000, 0 }, { 0x2000, 0x2000, 0x70 } } },
		{ "over the start",
		  { { 0x2000, 0x2000, 0 } },
		  { 0x1000, 0x2000, 0x70 },
		  { { 0x1000, 0x2000, 0x70 }, { 0x3000, 0x1000, 0x1000 } } },
		{ "over three",
		  { { 0x1000, 0x1000, 0 }, { 0x2000, 0x1000, 0 }, { 0x3000, 0x1000, 0 } },
		  { 0x1800, 0x2000, 0x70 },
		  { { 0x1000, 0x800, 0 }, { 0x1800, 0x2000, 0x70 }, { 0x3800, 0x800, 0x800 } } },
		{ "to the top",
		  { { 0xfffffffffffff000, 0x1000, 0 } },
		  { 0xfffffffffffff800, 0x800, 0x70 },
		  { { 0xfffffffffffff000, 0x800, 0 }, { 0xfffffffffffff800, 0x800, 0x70 } } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(space_freep) struct space *s = make(NULL, 0);
		struct layout layout;
		size_t n = 0, n_left = 0;

		print_message("  %s\n", rows[i].name);
		for (; n < 3 && rows[i].old[n].size; n++)
			map(s, 0, rows[i].old[n].start, rows[i].old[n].size, &a,
			    rows[i].old[n].offset);
		map(s, 1, rows[i].new.start, rows[i].new.size, &b, rows[i].new.offset);

		layout_init(&layout, s);
		for (size_t k = 0; k <= n; k++) {
			assert_int_equal(layout_advance(&layout), 0);
			assert_int_equal(layout.added.n, 1);
		}
		for (; n_left < 5 && rows[i].left[n_left].size; n_left++) {
			const struct piece *p = &rows[i].left[n_left];
			const uint64_t last = p->start + (p->size - 1);
			const struct extent *e = layout_find(&layout, p->start);

			assert_non_null(e);
			assert_int_equal(e->start, p->start);
			assert_int_equal(e->last, last);
			assert_int_equal(e->offset, p->offset);
			assert_ptr_equal(e->object, p->offset == 0x70 ? &b : &a);
			assert_ptr_equal(layout_find(&layout, last), e);
		}
		assert_int_equal(layout.extents.n, n_left);
		assert_null(layout_find(&layout, 0));
		assert_null(layout_find(&layout, 0xfff));
		layout_deinit(&layout);
	}
}

/*
 * A mapping as text: kind (F file, M memory, J JIT, E early, P what ran, R retire), first page,
 * number of pages, and letter of one of 26 objects.
 */
static struct mapping read_mapping(const char *text, struct object *objects)
{
	static const char kinds[] = "FMJEPR";
	struct mapping mapping = {
		.kind = (enum mapping_kind)(strchr(kinds, text[0]) - kinds),
		.start = 0x1000 * strtoul((char[]){ text[1], 0 }, NULL, 16),
		.size = 0x1000 * strtoul((char[]){ text[2], 0 }, NULL, 16),
		.object = &objects[text[strlen(text) - 1] - 'a'],
	};

	mapping.offset = mapping.start;
	if (mapping.kind == MAPPING_RETIRE) {
		mapping.retired = mapping.object;
		mapping.object = &objects['x' - 'a'];
	}
	return mapping;
}

/*
 * What each kind covers: the letters say what is visible in each of 16 pages, after the mappings
 * given.
 */
static void kinds_cover_what_they_may(void **state)
{
	static const struct {
		const char *name;
		const char *maps[6];
		const char *visible;
	} rows[] = {
		{ "memory covers files and memory",
		  { "F0fa", "M24b", "M31c" },
		  "aabcbbaaaaaaaaa." },
		{ "memory does not cover JIT code",
		  { "J24j", "J82k", "M0fm" },
		  "mmjjjjmmkkmmmmm." },
		{ "a file covers JIT code", { "J24j", "F31f" }, "..jfjj.........." },
		{ "JIT code covers files", { "F08f", "J31j" }, "fffjffff........" },
		{ "early code covers memory only",
		  { "F04f", "M44m", "J51j", "E08e" },
		  "ffffejee........" },
		{ "the oldest early code is on top", { "E08e", "E22d" }, "eeddeeee........" },
		{ "memory is below early code", { "E22e", "M06m" }, "mmeemm.........." },
		{ "JIT code covers early code", { "E08e", "J22j" }, "eejjeeee........" },
		{ "what ran covers all", { "F02f", "J24j", "E61e", "P16p" }, "fpppppp........." },
		{ "everything covers what ran",
		  { "P08p", "M01m", "E11e", "J31j", "F51f" },
		  "mepjpfpp........" },
		{ "retired code, and only that",
		  { "F02f", "J24j", "J82k", "E61e", "R0fj" },
		  "ffxxxxe.kk......" },
	};
	static struct object objects[26];

	(void)state;
	for (size_t i = 0; i < 26; i++)
		objects[i].id.id = (uint32_t)i;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(space_freep) struct space *s = make(NULL, 0);
		char visible[17] = "";
		struct layout layout;

		print_message("  %s\n", rows[i].name);
		layout_init(&layout, s);
		for (size_t k = 0; k < 6 && rows[i].maps[k]; k++) {
			const struct mapping mapping = read_mapping(rows[i].maps[k], objects);

			assert_int_equal(space_map(s, &mapping), 0);
			assert_int_equal(layout_advance(&layout), 0);
		}
		for (size_t page = 0; page < 16; page++) {
			const struct extent *e = layout_find(&layout, 0x1000 * page);

			visible[page] = e ? (char)('a' + e->object->id.id) : '.';
			assert_true(!e || e->offset == e->start);
		}
		assert_string_equal(visible, rows[i].visible);
		layout_deinit(&layout);
	}
}

/* Map memory, which JIT compilers do again and again: @n_pages from @page on. */
static void map_memory(struct space *s, uint64_t time, uint64_t page, uint64_t n_pages,
		       const struct object *object, uint64_t offset)
{
	assert_int_equal(space_map(s, &(struct mapping){ .time = time,
							 .kind = MAPPING_MEMORY,
							 .start = 0x1000 * page,
							 .size = 0x1000 * n_pages,
							 .offset = offset,
							 .object = object }),
			 0);
}

/*
 * What a mapping adds, in pages, where the same object is mapped already: nothing, if each byte
 * stays at its address. An object without bytes has none that could be elsewhere.
 */
static void the_same_again_adds_nothing(void **state)
{
	static const struct object ok = { .state = OBJECT_OK }, other = { .state = OBJECT_OK },
				   missing = { .state = OBJECT_MISSING };
	static const struct {
		const char *title;
		const struct object *first, *again;
		uint64_t page, n_pages, offset;
		uint64_t n_added;
	} rows[] = {
		{ "the same", &ok, &ok, 4, 4, 0, 0 },
		{ "its second half", &ok, &ok, 6, 2, 0x2000, 0 },
		{ "beyond its end, too", &ok, &ok, 6, 4, 0x2000, 2 },
		{ "other bytes of it", &ok, &ok, 4, 4, 0x1000, 4 },
		{ "another object", &ok, &other, 4, 4, 0, 4 },
		{ "what is missing", &missing, &missing, 4, 4, 0, 0 },
		{ "other bytes of what is missing", &missing, &missing, 4, 4, 0x1000, 0 },
		{ "instead of what is missing", &missing, &ok, 4, 4, 0, 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(space_freep) struct space *s = make(NULL, 0);
		struct layout layout;
		uint64_t n = 0;

		print_message("  %s\n", rows[i].title);
		map_memory(s, 1, 4, 4, rows[i].first, 0);
		map_memory(s, 2, rows[i].page, rows[i].n_pages, rows[i].again, rows[i].offset);
		layout_init(&layout, s);
		assert_int_equal(layout_advance(&layout), 0);
		assert_int_equal(layout_advance(&layout), 0);
		for (size_t k = 0; k < layout.added.n; k++)
			n +=
			    (layout.added.items[k].last + 1 - layout.added.items[k].start) / 0x1000;
		assert_int_equal(n, rows[i].n_added);
		layout_deinit(&layout);
	}
}

/* What is in doubt, by page: of mappings that come behind the one the layout stands at. */
static void what_is_replaced_is_in_doubt(void **state)
{
	static const struct {
		const char *name;
		const char *now[2], *later[3];
		const char *doubts; /* !: of pages that something is at */
	} rows[] = {
		{ "nothing comes", { "F04f" }, {}, "ffff............" },
		{ "beside", { "F04f" }, { "F42g" }, "ffff............" },
		{ "another", { "F04f" }, { "F12g" }, "f!!f............" },
		{ "the same", { "F04f" }, { "F12f" }, "ffff............" },
		{ "the same bytes", { "F04f" }, { "F12y" }, "ffff............" },
		{ "too many to compare", { "F05f" }, { "F05y" }, "!!!!!..........." },
		{ "one after the other",
		  { "F08f" },
		  { "F21g", "F52g", "F23g" },
		  "ff!!!!!f........" },
		{ "and back", { "F04f" }, { "F12g", "F12f" }, "f!!f............" },
		{ "memory below JIT code", { "J22j" }, { "M06m" }, "..jj............" },
		{ "JIT code over memory", { "M06m" }, { "J22f" }, "mm!!mm.........." },
		{ "retired", { "J22j" }, { "R06j" }, "..jj............" },
		{ "over what has none", { "F04n" }, { "F04g" }, "nnnn............" },
	};
	static uint8_t bytes[0x10000], others[0x10000];
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL, *other = NULL;
	static struct object objects[26];

	(void)state;
	memset(others, 0xcc, sizeof(others));
	assert_int_equal(filebytes_new_in_memory(bytes, sizeof(bytes), &file), 0);
	assert_int_equal(filebytes_new_in_memory(others, sizeof(others), &other), 0);
	for (size_t i = 0; i < 26; i++)
		objects[i] = (struct object){
			.id.id = (uint32_t)i,
			.state = i == 'n' - 'a' ? OBJECT_MISSING : OBJECT_OK,
			.file = i == 'f' - 'a' || i == 'y' - 'a' ? file : other,
			.size = sizeof(bytes),
		};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(space_freep) struct space *s = make(NULL, 0);
		char doubts[17] = "";
		struct mapping mapping;
		struct layout layout;
		size_t until = 0;

		print_message("  %s\n", rows[i].name);
		layout_init(&layout, s);
		for (size_t k = 0; k < 2 && rows[i].now[k]; k++, until++) {
			mapping = read_mapping(rows[i].now[k], objects);
			assert_int_equal(space_map(s, &mapping), 0);
			assert_int_equal(layout_advance(&layout), 0);
		}
		for (size_t k = 0; k < 3 && rows[i].later[k]; k++, until++) {
			mapping = read_mapping(rows[i].later[k], objects);
			assert_int_equal(space_map(s, &mapping), 0);
		}
		assert_int_equal(layout_doubt(&layout, until), 0);
		for (size_t page = 0; page < 16; page++) {
			const struct extent *e = layout_find(&layout, 0x1000 * page + 0x100);
			uint64_t last = UINT64_MAX;

			doubts[page] = !e ? '.'
				       : layout_is_sure(&layout, 0x1000 * page + 0x100, &last)
					   ? (char)('a' + e->object->id.id)
					   : '!';
			/* An instruction that reaches into it. */
			if (page > 0 && doubts[page] == '!' && doubts[page - 1] != '!') {
				last = UINT64_MAX;
				assert_true(layout_is_sure(&layout, 0x1000 * page - 15, &last));
				assert_int_equal(last, 0x1000 * page - 15);
				last = UINT64_MAX;
				assert_false(layout_is_sure(&layout, 0x1000 * page - 14, &last));
			}
		}
		assert_string_equal(doubts, rows[i].doubts);
		assert_int_equal(layout_doubt(&layout, layout.generation), 0);
		assert_int_equal(layout.doubts.n, 0);
		layout_deinit(&layout);
	}
}

/* Where more changes than is looked at, all is in doubt. */
static void too_much_is_all_in_doubt(void **state)
{
	_cleanup_(space_freep) struct space *s = make(NULL, 0);
	struct layout layout;
	uint64_t last = UINT64_MAX;

	(void)state;
	for (size_t i = 0; i < 5000; i++)
		map(s, i, 0x10000 * (i + 1), 0x1000, &a, 0);
	layout_init(&layout, s);
	assert_int_equal(layout_advance(&layout), 0);
	assert_int_equal(layout_doubt(&layout, 4000), 0);
	assert_true(layout_is_sure(&layout, 0x10000, &last));
	assert_int_equal(layout_doubt(&layout, 5000), 0);
	assert_false(layout_is_sure(&layout, 0x10000, &last));
	layout_deinit(&layout);
}

/* Without time, all that was ever replaced is in doubt. */
static void what_was_ever_replaced_is_in_doubt(void **state)
{
	static const struct object c = { .id = { .name = "c" } };
	_cleanup_(space_freep) struct space *s = make(NULL, 0);
	struct layout layout;
	uint64_t last;

	(void)state;
	map(s, 1, 0x1000, 0x4000, &a, 0);
	map(s, 2, 0x2000, 0x1000, &c, 0);
	map(s, 3, 0x3000, 0x1000, &a, 0x2000);
	map(s, 4, 0x8000, 0x1000, &c, 0);
	layout_init(&layout, s);
	assert_int_equal(layout_advance_doubting(&layout, 4), 0);
	assert_int_equal(layout.generation, 4);
	assert_ptr_equal(layout_find(&layout, 0x2100)->object, &c);
	last = UINT64_MAX;
	assert_true(layout_is_sure(&layout, 0x1000, &last));
	assert_int_equal(last, 0x2000 - 15);
	last = UINT64_MAX;
	assert_false(layout_is_sure(&layout, 0x2000, &last));
	assert_false(layout_is_sure(&layout, 0x2fff, &last));
	last = UINT64_MAX;
	assert_true(layout_is_sure(&layout, 0x3000, &last));
	assert_true(layout_is_sure(&layout, 0x8000, &last));
	assert_int_equal(last, UINT64_MAX);
	layout_deinit(&layout);
}

/* A JIT compiler asks for its memory again and again, over and between what it has put there. */
static void weaker_mappings_are_not_followed_for_ever(void **state)
{
	enum { JITS = 1024, AGAIN = 1024 };
	_cleanup_(space_freep) struct space *s = make(NULL, 0);
	struct mapping mapping = { .kind = MAPPING_JIT, .size = 0x10, .object = &a };
	struct mapping memory = {
		.kind = MAPPING_MEMORY, .start = 0x1000, .size = JITS * 0x20, .object = &b
	};
	const struct extent *e;
	struct layout layout;

	(void)state;
	layout_init(&layout, s);
	for (size_t i = 0; i < JITS; i++) {
		mapping.start = 0x1000 + i * 0x20;
		assert_int_equal(space_map(s, &mapping), 0);
		assert_int_equal(layout_advance(&layout), 0);
	}
	assert_int_equal(space_map(s, &memory), 0);
	assert_int_equal(layout_advance(&layout), 0);
	assert_int_equal(layout.added.n, JITS);
	assert_int_equal(layout.extents.n, 2 * JITS);
	/* It is there already. */
	assert_int_equal(space_map(s, &memory), 0);
	assert_int_equal(layout_advance(&layout), 0);
	assert_int_equal(layout.added.n, 0);
	/* Of other memory each time, nothing is known in the end, nor of what lies above it. */
	for (size_t i = 0; i < AGAIN && layout.extents.n == 2 * JITS; i++) {
		memory.object = i % 2 ? &b : &a;
		assert_int_equal(space_map(s, &memory), 0);
		assert_int_equal(layout_advance(&layout), 0);
	}
	assert_in_range(layout.extents.n, 1, 2 * JITS - 1);
	e = layout_find(&layout, memory.start + memory.size - 1);
	assert_non_null(e);
	assert_ptr_equal(e->object, memory.object);
	assert_int_equal(e->offset, memory.object->size);
	layout_deinit(&layout);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(generations_follow_time),
		cmocka_unit_test(a_forked_space_is_a_copy_at_that_time),
		cmocka_unit_test(impossible_mappings_are_refused),
		cmocka_unit_test(a_new_mapping_covers_older_ones),
		cmocka_unit_test(kinds_cover_what_they_may),
		cmocka_unit_test(the_same_again_adds_nothing),
		cmocka_unit_test(what_is_replaced_is_in_doubt),
		cmocka_unit_test(too_much_is_all_in_doubt),
		cmocka_unit_test(what_was_ever_replaced_is_in_doubt),
		cmocka_unit_test(weaker_mappings_are_not_followed_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
