/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Views: the segments of a small program, their links, and what a change of mappings does. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/image/view.h"

#define BASE 0x401000

/* Offsets are in the comments; it is mapped at BASE. */
static const uint8_t program[] = {
	0x90,                         /* 00 nop */
	0x74, 0x02,                   /* 01 je 05 */
	0xeb, 0x01,                   /* 03 jmp 06 */
	0x90,                         /* 05 nop */
	0xe8, 0x05, 0x00, 0x00, 0x00, /* 06 call 10 */
	0xff, 0xe0,                   /* 0b jmp *%rax */
	0xff, 0xd0,                   /* 0d call *%rax */
	0x90,                         /* 0f nop */
	0x90,                         /* 10 nop */
	0xc3,                         /* 11 ret */
	0x0f, 0x05,                   /* 12 syscall */
	0xeb, 0xfe,                   /* 14 jmp 14 */
	0x90,                         /* 16 nop, the last byte of the mapping */
};

/* Of the instruction eb fe, jmp to itself. */
static uint8_t loops[64 << 10];

struct setup {
	struct objects *objects;
	const struct object *object, *loops;
	struct space *space;
	struct cache *cache;
	struct views *views;
};

static void map_at(struct setup *s, uint64_t time, uint64_t start)
{
	assert_int_equal(space_map(s->space, &(struct mapping){ .time = time,
								.start = start,
								.size = sizeof(program),
								.object = s->object }),
			 0);
}

static const struct object *add_code(struct setup *s, const uint8_t *code, size_t size)
{
	char path[] = "/tmp/ptd-test-XXXXXX";
	const int fd = mkstemp(path);
	const struct object *object;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, code, size), size);
	close(fd);
	assert_int_equal(objects_add_file(s->objects, path, &object), 0);
	unlink(path);
	return object;
}

static int set_up(void **state)
{
	struct setup *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	for (size_t i = 0; i < sizeof(loops); i++)
		loops[i] = i % 2 == 0 ? 0xeb : 0xfe;
	assert_int_equal(objects_new(NULL, &s->objects), 0);
	s->object = add_code(s, program, sizeof(program));
	s->loops = add_code(s, loops, sizeof(loops));
	assert_int_equal(space_new(0, NULL, 0, &s->space), 0);
	assert_int_equal(cache_new(NULL, NULL, &s->cache), 0);
	assert_int_equal(views_new(s->cache, &s->views), 0);
	map_at(s, 1, BASE);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct setup *s = *state;

	views_free(s->views);
	cache_free(s->cache);
	space_free(s->space);
	objects_free(s->objects);
	free(s);
	return 0;
}

static struct seg *find_seg(struct view *view, uint64_t offset)
{
	struct seg *seg;

	assert_int_equal(view_find(view, BASE + offset, 64, &seg), 0);
	assert_int_equal(seg->ip, BASE + offset);
	return seg;
}

static struct view *get_view(struct setup *s, size_t generation, struct view *view)
{
	assert_int_equal(views_get(s->views, s->space, generation, generation, view, &view), 0);
	assert_non_null(view);
	return view;
}

/* A row for each kind of end. */
static void ends(void **state)
{
	static const struct {
		uint64_t from;
		enum seg_kind kind;
		size_t n_runs, n_insns, n_calls;
		uint64_t to[2];
		enum ptd_gap_reason reason;
	} rows[] = {
		{ 0x00, SEG_COND, 1, 2, 0, { 0x03, 0x05 }, 0 },
		{ 0x03, SEG_RETURN, 3, 4, 1, {}, 0 }, /* over a jump and a call */
		{ 0x05, SEG_RETURN, 2, 4, 1, {}, 0 },
		{ 0x0b, SEG_INDIRECT, 1, 1, 0, {}, 0 },
		{ 0x0d, SEG_INDIRECT, 1, 1, 1, {}, 0 },
		{ 0x12, SEG_FAR, 1, 1, 0, {}, 0 },
		{ 0x14, SEG_ON, SEG_RUNS_MAX, SEG_RUNS_MAX, 0, { 0x14 }, 0 },
		{ 0x16, SEG_NOWHERE, 1, 1, 0, { 0x17 }, PTD_GAP_NO_CODE },
		{ 0x40, SEG_NOWHERE, 0, 0, 0, { 0x40 }, PTD_GAP_NO_CODE },
	};
	struct setup *s = *state;
	struct view *view = get_view(s, 1, NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct seg *seg = find_seg(view, rows[i].from);

		assert_int_equal(seg->kind, rows[i].kind);
		assert_int_equal(seg->n_runs, rows[i].n_runs);
		assert_int_equal(seg->n_insns, rows[i].n_insns);
		assert_int_equal(seg->n_calls, rows[i].n_calls);
		assert_int_equal(seg->reason, rows[i].reason);
		for (size_t k = 0; k < 2 && rows[i].to[k]; k++)
			assert_int_equal(seg->to_ip[k], BASE + rows[i].to[k]);
		/* It is made once. */
		assert_ptr_equal(find_seg(view, rows[i].from), seg);
	}
	assert_int_equal(find_seg(view, 0x05)->calls[0].ret, BASE + 0x0b);
	assert_true(view_has_code(view, BASE));
	assert_false(view_has_code(view, BASE + 0x1000));
	view_put(view);
}

/* A mapping over the code makes new segments of what it covers, and of nothing else. */
static void changes(void **state)
{
	struct setup *s = *state;
	struct seg *low, *high, *next;
	struct view *view;
	uint64_t epoch;

	map_at(s, 2, BASE + 0x1000);
	map_at(s, 3, BASE + 0x1000);
	view = get_view(s, 2, NULL);
	low = find_seg(view, 0x00);
	high = find_seg(view, 0x1000);
	assert_int_equal(high->kind, SEG_COND);
	epoch = view_epoch(view);
	view = get_view(s, 3, view);
	assert_true(view_epoch(view) == epoch);
	assert_ptr_equal(find_seg(view, 0x00), low);
	assert_int_equal(low->kind, SEG_COND);
	assert_int_equal(high->kind, SEG_GONE);
	next = find_seg(view, 0x1000);
	assert_ptr_not_equal(next, high);
	assert_int_equal(next->kind, SEG_COND);
	/* Time goes back: the segments are forgotten. */
	view = get_view(s, 2, view);
	assert_true(view_epoch(view) != epoch);
	view_put(view);
}

/* Views of one generation are one; another generation beside it is another view. */
static void shared(void **state)
{
	struct setup *s = *state;
	struct view *a, *b, *c;

	map_at(s, 2, BASE + 0x1000);
	a = get_view(s, 1, NULL);
	b = get_view(s, 1, NULL);
	assert_ptr_equal(a, b);
	c = get_view(s, 2, NULL);
	assert_ptr_not_equal(a, c);
	assert_true(view_epoch(a) != view_epoch(c));
	assert_false(view_has_code(a, BASE + 0x1000));
	assert_true(view_has_code(c, BASE + 0x1000));
	/* Time goes back: who is alone in its view gets it anew. */
	c = get_view(s, 1, c);
	assert_false(view_has_code(c, BASE + 0x1000));
	view_put(a);
	view_put(b);
	view_put(c);
}

/* What was or will be replaced is not known. */
static void doubt(void **state)
{
	struct setup *s = *state;
	struct view *view;

	assert_int_equal(
	    space_map(s->space,
		      &(struct mapping){
			  .time = 2, .start = BASE, .size = 8, .offset = 3, .object = s->object }),
	    0);
	assert_int_equal(views_get(s->views, s->space, 1, 2, NULL, &view), 0);
	assert_int_equal(find_seg(view, 0x00)->kind, SEG_NOWHERE);
	view = get_view(s, 2, view);
	assert_int_equal(find_seg(view, 0x00)->kind, SEG_INDIRECT);
	assert_int_equal(views_get(s->views, s->space, 2, 0, view, &view), 0);
	assert_int_equal(find_seg(view, 0x00)->kind, SEG_NOWHERE);
	view_put(view);
}

/* Make all segments of 64 KiB of code of which each instruction jumps to itself, some 45 MB. */
static void fill_view(struct views *views, const struct space *space, struct view **ret_view)
{
	struct seg *seg;

	assert_int_equal(views_get(views, space, 1, 1, NULL, ret_view), 0);
	for (uint64_t i = 0; i < sizeof(loops); i += 2)
		assert_int_equal(view_find(*ret_view, BASE + i, 64, &seg), 0);
}

/*
 * The segments of many spaces take limited memory: those of a space that runs time and again stay,
 * and those of spaces that ran long ago go.
 */
static void many_spaces(void **state)
{
	struct setup *s = *state;
	struct space *spaces[12];
	struct view *often, *old, *view;
	uint64_t epoch_often, epoch_old;
	const size_t n_before = mallinfo2().uordblks;

	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		assert_int_equal(space_new((uint32_t)i, NULL, 0, &spaces[i]), 0);
		assert_int_equal(space_map(spaces[i], &(struct mapping){ .time = 1,
									 .start = BASE,
									 .size = sizeof(loops),
									 .object = s->loops }),
				 0);
	}
	fill_view(s->views, spaces[0], &often);
	epoch_often = view_epoch(often);
	fill_view(s->views, spaces[1], &old);
	epoch_old = view_epoch(old);
	view_put(often);
	view_put(old);
	for (size_t i = 2; i < ARRAY_LEN(spaces); i++) {
		fill_view(s->views, spaces[i], &view);
		assert_int_equal(views_get(s->views, spaces[0], 1, 1, view, &view), 0);
		assert_ptr_equal(view, often);
		view_put(view);
	}
	assert_true(view_epoch(often) == epoch_often);
	assert_true(view_epoch(old) != epoch_old);
	assert_true(mallinfo2().uordblks - n_before < VIEWS_SEG_BYTES_MAX + (UINT64_C(80) << 20));
	s->views = views_free(s->views);
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
		space_free(spaces[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(changes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(doubt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_spaces, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
