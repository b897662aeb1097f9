/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/view.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/image/segtable.h"
#include "decoder/util/mutex.h"
#include "decoder/x86/insn.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

#define PAGE_SHIFT    12
#define INSN_SIZE_MAX 15

/*
 * How many views of one space are made before one is taken back to an earlier generation. Where one
 * thread decodes parts of several CPUs in turns, each CPU's parts go on to later generations, and
 * need a view each.
 */
#define VIEWS_OF_SPACE_MAX 16

/* A segment that touches a page. */
struct touch {
	struct seg *seg;
	struct touch *next;
};

struct view {
	struct views *views; /* borrowed */
	struct layout layout;
	size_t until;     /* what is in doubt: see views_get() */
	bool is_doubtful; /* so is what was replaced before */
	unsigned n_users;
	bool is_full; /* its segments are too many: it gets no more users until they are gone */
	struct view *next;                     /* of the same space */
	struct view *idle_before, *idle_after; /* in the list of views without users */

	uint64_t epoch;
	struct segtable segs[3]; /* of 16-, 32- and 64-bit code */
	pthread_mutex_t mutex;   /* held to add a segment: */
	struct arena arena;
	struct map touched; /* page → struct touch */
	size_t n_bytes;     /* that all of these take */
};

struct views {
	struct cache *cache; /* borrowed */
	bool is_shared;      /* by several threads */
	/* Of what follows, and of the views but for their segments: a view changes only while it
	 * has no user, or one thread alone uses all views. */
	pthread_mutex_t mutex;
	VEC(struct view *) all;
	struct map of_space; /* space → the first of its views */
	/* The views without users that have segments: the one without for longest is first. */
	struct view *idle_first, *idle_last;
	size_t n_extents;     /* of all layouts */
	uint64_t n_again;     /* mappings */
	uint64_t n_seg_bytes; /* of all views; added to with another mutex */
	size_t n_extents_max;
	uint64_t n_seg_bytes_max;
};

int views_new(struct cache *cache, struct views **ret_views)
{
	struct views *views = calloc(1, sizeof(*views));

	if (!views)
		return -ENOMEM;
	views->cache = cache;
	views->n_extents_max = VIEWS_EXTENTS_MAX;
	views->n_seg_bytes_max = VIEWS_SEG_BYTES_MAX;
	mutex_init_short(&views->mutex);
	*ret_views = views;
	return 0;
}

void views_share(struct views *views)
{
	views->is_shared = true;
	views->n_extents_max = VIEWS_EXTENTS_MAX / 2;
	views->n_seg_bytes_max = VIEWS_SEG_BYTES_MAX / 4 * 3;
}

/* Begin an epoch: views of other threads have other ones, too. */
static void begin_epoch(struct view *view)
{
	static _Atomic uint64_t n_epochs;

	view->epoch = atomic_fetch_add_explicit(&n_epochs, 1, memory_order_relaxed) + 1;
}

uint64_t view_epoch(const struct view *view)
{
	return view->epoch;
}

static void add_idle(struct view *view)
{
	struct views *views = view->views;

	view->idle_before = views->idle_last;
	view->idle_after = NULL;
	*(view->idle_before ? &view->idle_before->idle_after : &views->idle_first) = view;
	views->idle_last = view;
}

/* Take the view from the list of idle ones, if it is there. */
static void remove_idle(struct view *view)
{
	struct views *views = view->views;

	if (!view->idle_before && views->idle_first != view)
		return;
	*(view->idle_before ? &view->idle_before->idle_after : &views->idle_first) =
	    view->idle_after;
	*(view->idle_after ? &view->idle_after->idle_before : &views->idle_last) =
	    view->idle_before;
	view->idle_before = view->idle_after = NULL;
}

/* Forget the segments. */
static void forget_segs(struct view *view)
{
	remove_idle(view);
	begin_epoch(view);
	(void)__atomic_sub_fetch(&view->views->n_seg_bytes, view->n_bytes, __ATOMIC_RELAXED);
	view->n_bytes = 0;
	view->is_full = false;
	arena_deinit(&view->arena);
	view->arena = (struct arena){};
	for (size_t i = 0; i < ARRAY_LEN(view->segs); i++)
		segtable_deinit(&view->segs[i]);
	map_deinit(&view->touched);
}

static bool has_too_many_segs(const struct views *views)
{
	return __atomic_load_n(&views->n_seg_bytes, __ATOMIC_RELAXED) > views->n_seg_bytes_max;
}

/*
 * There are too many segments. Those of the views that have been without a user for longest go
 * first. If that is not enough, all go; those of a view that another thread uses go when it has no
 * user.
 */
static void limit_segs(struct views *views)
{
	while (views->idle_first && has_too_many_segs(views))
		forget_segs(views->idle_first);
	if (!has_too_many_segs(views))
		return;
	for (size_t i = 0; i < views->all.n; i++) {
		struct view *view = views->all.items[i];

		if (views->is_shared && view->n_users > 0)
			view->is_full = true;
		else
			forget_segs(view);
	}
}

/* Go back to generation 0. */
static void rewind_layout(struct view *view)
{
	const struct space *space = view->layout.space;

	forget_segs(view);
	view->views->n_extents -= view->layout.extents.n;
	layout_deinit(&view->layout);
	layout_init(&view->layout, space);
	view->until = 0;
	view->is_doubtful = false;
}

struct views *views_free(struct views *views)
{
	if (!views)
		return NULL;

	for (size_t i = 0; i < views->all.n; i++) {
		rewind_layout(views->all.items[i]);
		layout_deinit(&views->all.items[i]->layout);
		(void)pthread_mutex_destroy(&views->all.items[i]->mutex);
		free(views->all.items[i]);
	}
	(void)pthread_mutex_destroy(&views->mutex);
	vec_deinit(&views->all);
	map_deinit(&views->of_space);
	free(views);
	return NULL;
}

static int make_view(struct views *views, const struct space *space, struct view **ret_view)
{
	struct view *view = calloc(1, sizeof(*view));

	if (!view)
		return -ENOMEM;
	view->views = views;
	mutex_init_short(&view->mutex);
	begin_epoch(view);
	view->next = map_pointer(&views->of_space, (uintptr_t)space);
	if (vec_reserve(&views->all, 1) < 0 ||
	    map_put(&views->of_space, (uintptr_t)space, (uintptr_t)view) < 0) {
		(void)pthread_mutex_destroy(&view->mutex);
		free(view);
		return -ENOMEM;
	}
	views->all.items[views->all.n++] = view;
	layout_init(&view->layout, space);
	*ret_view = view;
	return 0;
}

/*
 * What changes
 */

static void drop_page(uint64_t *first)
{
	for (struct touch *t = (struct touch *)(uintptr_t)*first; t; t = t->next) {
		t->seg->kind = SEG_GONE;
		t->seg->to[0] = NULL;
	}
	*first = 0;
}

/* What is at these addresses, inclusive, has changed. */
static void drop_segs(struct view *view, uint64_t start, uint64_t last)
{
	const uint64_t first_page = start >> PAGE_SHIFT, last_page = last >> PAGE_SHIFT;

	if (last_page - first_page < view->touched.n_used) {
		for (uint64_t page = first_page; page <= last_page; page++) {
			uint64_t *first = map_get(&view->touched, page);

			if (first)
				drop_page(first);
		}
		return;
	}
	for (size_t i = 0; i < view->touched.n_slots; i++) {
		struct map_slot *slot = &view->touched.slots[i];

		if (slot->used && slot->key >= first_page && slot->key <= last_page)
			drop_page(&slot->value);
	}
}

static void drop_doubts(struct view *view)
{
	for (size_t i = 0; i < view->layout.doubts.n; i++)
		drop_segs(view, view->layout.doubts.items[i].start,
			  view->layout.doubts.items[i].last);
}

/* Apply the next mapping. */
static int apply_mapping(struct view *view)
{
	struct layout *layout = &view->layout;
	struct space_place place = layout->place;
	const struct mapping *m = space_next(layout->space, &place);
	const int r = layout_advance(layout);

	if (r < 0)
		return r;
	if (view->touched.n_used == 0)
		return 0;
	if (m->kind == MAPPING_RETIRE)
		drop_segs(view, m->start, m->start + (m->size - 1));
	for (size_t i = 0; i < layout->added.n; i++)
		drop_segs(view, layout->added.items[i].start, layout->added.items[i].last);
	return 0;
}

static int advance_view(struct view *view, size_t generation, size_t until)
{
	int r = 0;

	view->until = until;
	view->is_doubtful = until < generation;
	if (view->is_doubtful) {
		forget_segs(view);
		return layout_advance_doubting(&view->layout, generation);
	}
	while (r == 0 && view->layout.generation < generation)
		r = apply_mapping(view);
	if (r < 0)
		return r;
	drop_doubts(view);
	r = layout_doubt(&view->layout, until);
	drop_doubts(view);
	return r;
}

/*
 * Which view
 */

/* Forget what no engine stands in. */
static void make_room(struct views *views)
{
	for (size_t i = 0; i < views->all.n; i++) {
		struct view *view = views->all.items[i];

		if (view->n_users > 0)
			continue;
		views->n_again += view->layout.generation;
		rewind_layout(view);
	}
}

/* view_put() with the mutex of the views locked. */
static void put_view(struct view *view)
{
	if (--view->n_users > 0)
		return;
	if (view->is_full)
		forget_segs(view);
	else if (view->n_bytes > 0)
		add_idle(view);
}

static void use_view(struct view *view)
{
	remove_idle(view);
	view->n_users++;
}

void view_put(struct view *view)
{
	if (!view)
		return;
	(void)pthread_mutex_lock(&view->views->mutex);
	put_view(view);
	(void)pthread_mutex_unlock(&view->views->mutex);
}

/* Return: the view of @space that stands where is asked for, or the nearest before that, or, of as
 * many as there may be, any; NULL if another one is to be made. */
static struct view *choose_view(const struct views *views, const struct space *space,
				size_t generation, size_t until, bool *ret_stands)
{
	struct view *best = NULL, *any = NULL;
	size_t n = 0;

	*ret_stands = false;
	for (struct view *v = map_pointer(&views->of_space, (uintptr_t)space); v;
	     v = v->next, n++) {
		if (v->layout.generation == generation && v->until == until && !v->is_full) {
			*ret_stands = true;
			return v;
		}
		if (v->n_users > 0)
			continue;
		any = v;
		if (!v->is_doubtful && v->layout.generation <= generation &&
		    (!best || best->layout.generation < v->layout.generation))
			best = v;
	}
	return best || n < VIEWS_OF_SPACE_MAX ? best : any;
}

/* views_get() with the mutex locked, and without a view in exchange. */
static int get_view(struct views *views, const struct space *space, size_t generation, size_t until,
		    struct view **ret_view)
{
	struct view *view;
	size_t n_before;
	bool stands;
	int r;

	if (has_too_many_segs(views))
		limit_segs(views);
	view = choose_view(views, space, generation, until, &stands);
	if (stands) {
		use_view(view);
		*ret_view = view;
		return 0;
	}
	if (!view) {
		r = make_view(views, space, &view);
		if (r < 0)
			return r;
	}
	/* What is in doubt is found while mappings are applied. */
	if (view->is_doubtful || view->layout.generation > generation ||
	    (until < generation && view->layout.generation > 0)) {
		views->n_again += generation + 1;
		if (views->n_again > VIEWS_AGAIN_MAX)
			return VIEWS_FULL;
		rewind_layout(view);
	}
	n_before = view->layout.extents.n;
	use_view(view);
	r = advance_view(view, generation, until);
	views->n_extents += view->layout.extents.n - n_before;
	if (r == 0 && views->n_extents > views->n_extents_max)
		make_room(views);
	if (r == 0 && views->n_extents > views->n_extents_max)
		r = VIEWS_FULL;
	if (r != 0) {
		view->n_users--;
		rewind_layout(view);
		return r;
	}
	*ret_view = view;
	return 0;
}

int views_get(struct views *views, const struct space *space, size_t generation, size_t until,
	      struct view *view, struct view **ret_view)
{
	int r;

	*ret_view = NULL;
	(void)pthread_mutex_lock(&views->mutex);
	if (view)
		put_view(view);
	r = get_view(views, space, generation, until, ret_view);
	(void)pthread_mutex_unlock(&views->mutex);
	return r;
}

/*
 * Code
 */

int view_find_code(struct view *view, uint64_t ip, const struct extent **ret_extent,
		   uint64_t *ret_offset, uint64_t *ret_last)
{
	const struct extent *e = layout_find(&view->layout, ip);
	uint64_t left;

	if (!e)
		return 1 + PTD_GAP_NO_CODE;
	if (e->object->state == OBJECT_MISSING)
		return 1 + PTD_GAP_NO_OBJECT;
	if (e->object->state == OBJECT_WRONG_ID)
		return 1 + PTD_GAP_WRONG_OBJECT;
	if (e->object->state == OBJECT_COPIES)
		return 1 + PTD_GAP_STEPPED;
	if (e->object->state != OBJECT_OK || e->offset >= e->object->size ||
	    ip - e->start >= e->object->size - e->offset)
		return 1 + PTD_GAP_NO_CODE;
	*ret_last = e->last;
	if (view->layout.doubts.n > 0 && !layout_is_sure(&view->layout, ip, ret_last))
		return 1 + PTD_GAP_NO_CODE;
	*ret_extent = e;
	*ret_offset = e->offset + (ip - e->start);
	left = e->object->size - *ret_offset;
	if (left - 1 < *ret_last - ip)
		*ret_last = ip + (left - 1);
	return 0;
}

bool view_has_code(struct view *view, uint64_t ip)
{
	const struct extent *e = layout_find(&view->layout, ip);

	return e && e->object->state == OBJECT_OK;
}

/* How many of @block's instructions are all there if nothing is known behind @last. */
static size_t reach(const struct ptd_block *block, uint64_t base, uint64_t last)
{
	size_t n = block->n_insns;

	while (n > 0 && last - base < block->size &&
	       block->insns[n - 1].offset + block->insns[n - 1].size - 1u > last - base)
		n--;
	return n;
}

/* Find the one instruction at @ip that goes on in other mappings. Return: as view_find_run(). */
static int find_stitched(struct view *view, uint64_t ip, uint8_t mode, struct ptd_run *ret_run)
{
	const struct extent *e, *first = NULL;
	uint64_t offset, last, first_offset = 0;
	uint8_t bytes[INSN_SIZE_MAX];
	const struct ptd_block *block;
	struct insn insn;
	size_t n = 0;
	int r;

	while (n < sizeof(bytes) && view_find_code(view, ip + n, &e, &offset, &last) == 0) {
		const uint64_t left = last - (ip + n);
		const size_t size = left < sizeof(bytes) - n ? (size_t)left + 1 : sizeof(bytes) - n;
		const uint8_t *there = object_bytes(e->object, offset, size);

		if (!first) {
			first = e;
			first_offset = offset;
		}
		if (!there)
			break;
		memcpy(bytes + n, there, size);
		n += size;
	}
	assert(first);
	if (insn_decode(mode, bytes, n, &insn) < 0) {
		/* Would it be one, if more were there? */
		memset(bytes + n, 0, sizeof(bytes) - n);
		return insn_decode(mode, bytes, sizeof(bytes), &insn) == 0 && insn.size > n
			   ? 1 + PTD_GAP_NO_CODE
			   : 1 + PTD_GAP_UNKNOWN_INSN;
	}
	r = cache_get_stitched(view->views->cache, first->object, first_offset, mode, bytes,
			       insn.size, &block);
	if (r < 0)
		return r == -ENOMEM ? r : 1 + PTD_GAP_UNKNOWN_INSN;
	*ret_run = (struct ptd_run){
		.block = block, .base = ip, .n = 1, .early = first->kind == MAPPING_EARLY
	};
	return 0;
}

int view_find_run(struct view *view, uint64_t ip, uint8_t mode, struct ptd_run *ret_run)
{
	const struct ptd_block *block;
	const struct extent *e;
	uint64_t offset, last;
	size_t n;
	int r;

	r = view_find_code(view, ip, &e, &offset, &last);
	if (r != 0)
		return r;
	r = cache_get(view->views->cache, e->object, offset, mode, &block);
	if (r == -ENOMEM)
		return r;
	n = r == 0 ? reach(block, ip, last) : 0;
	if (n == 0)
		return find_stitched(view, ip, mode, ret_run);
	*ret_run = (struct ptd_run){
		.block = block, .base = ip, .n = (uint16_t)n, .early = e->kind == MAPPING_EARLY
	};
	return 0;
}

/*
 * Segments
 */

struct making {
	struct view *view;
	struct seg seg;
	struct ptd_run runs[SEG_RUNS_MAX];
	struct seg_call calls[SEG_RUNS_MAX];
	uint64_t pages[2 * SEG_RUNS_MAX + 2];
	size_t n_pages;
};

static void touch_pages(struct making *m, uint64_t ip, size_t size)
{
	for (uint64_t page = ip >> PAGE_SHIFT;; page = (ip + size - 1) >> PAGE_SHIFT) {
		size_t i;

		for (i = 0; i < m->n_pages && m->pages[i] != page; i++)
			;
		if (i == m->n_pages && m->n_pages < ARRAY_LEN(m->pages))
			m->pages[m->n_pages++] = page;
		if (page == (ip + size - 1) >> PAGE_SHIFT)
			return;
	}
}

static bool is_far(const struct ptd_run *run)
{
	const struct ptd_insn *last = run_last(run);
	struct insn insn;

	return insn_decode(run->block->mode, run->block->bytes + last->offset, last->size, &insn) ==
		   0 &&
	       insn.far;
}

enum seg_kind run_leads(const struct ptd_run *run, uint64_t ret_to[static 2])
{
	ret_to[0] = run_next(run);
	ret_to[1] = run_target(run);
	switch (run_last(run)->iclass) {
	case PTD_INSN_OTHER:
	case PTD_INSN_PTWRITE:
		return SEG_ON;
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		/* 64-bit code has no direct far branch. */
		if (run->block->mode != 64 && ret_to[0] == ret_to[1] && is_far(run))
			return SEG_FAR;
		ret_to[0] = ret_to[1];
		return SEG_ON;
	case PTD_INSN_JUMP_COND:
		return SEG_COND;
	case PTD_INSN_RETURN:
		return SEG_RETURN;
	case PTD_INSN_JUMP_INDIRECT:
	case PTD_INSN_CALL_INDIRECT:
		return is_far(run) ? SEG_FAR : SEG_INDIRECT;
	default:
		return SEG_FAR;
	}
}

/* Take the next run. Return: whether it goes on, at @ip. */
static bool take_run(struct making *m, const struct ptd_run *run, uint64_t *ip)
{
	const struct ptd_insn *last = run_last(run);

	m->runs[m->seg.n_runs++] = *run;
	m->seg.n_insns += run->n;
	touch_pages(m, run->base, (size_t)last->offset + last->size);
	m->seg.kind = (uint8_t)run_leads(run, m->seg.to_ip);
	*ip = m->seg.to_ip[0];
	if (run_pushes(run, m->seg.kind, m->seg.to_ip))
		m->calls[m->seg.n_calls++] = (struct seg_call){ .ret = run_next(run) };
	return m->seg.kind == SEG_ON;
}

/* Go the way from @ip on. */
static int make_way(struct making *m, uint64_t ip)
{
	struct ptd_run run;
	int r;

	do {
		m->seg.kind = SEG_ON;
		m->seg.to_ip[0] = ip;
		if (m->seg.n_runs == SEG_RUNS_MAX)
			return 0;
		r = view_find_run(m->view, ip, m->seg.mode, &run);
		if (r < 0)
			return r;
		if (r > 0) {
			m->seg.kind = SEG_NOWHERE;
			m->seg.reason = (uint8_t)(r - 1);
			touch_pages(m, ip, INSN_SIZE_MAX);
			return 0;
		}
	} while (take_run(m, &run, &ip));
	return 0;
}

/* The memory of a segment, with what hangs on it. */
struct seg_memory {
	struct seg *seg;
	struct touch *touches; /* of the pages */
};

/* Copy what was made into memory of the view's. */
static int copy_seg(const struct making *m, struct seg_memory *ret_memory)
{
	const size_t runs_size = m->seg.n_runs * sizeof(*m->runs);
	const size_t calls_size = m->seg.n_calls * sizeof(*m->calls);
	const size_t size =
	    sizeof(struct seg) + runs_size + calls_size + m->n_pages * sizeof(struct touch);
	struct view *view = m->view;
	struct touch *touches;
	struct seg *seg;

	/* The memory may be new: the kernel gives it when it is written to, which takes long. */
	(void)pthread_mutex_lock(&view->mutex);
	seg = arena_alloc(&view->arena, size);
	(void)pthread_mutex_unlock(&view->mutex);
	if (!seg)
		return -ENOMEM;
	*seg = m->seg;
	seg->runs = (struct ptd_run *)(seg + 1);
	memcpy(seg->runs, m->runs, runs_size);
	seg->calls = (struct seg_call *)(seg->runs + seg->n_runs);
	memcpy(seg->calls, m->calls, calls_size);
	touches = (struct touch *)(seg->calls + seg->n_calls);
	for (size_t i = 0; i < m->n_pages; i++)
		touches[i] = (struct touch){ .seg = seg };
	*ret_memory = (struct seg_memory){ seg, touches };
	return 0;
}

/* Count the memory that the segments of the view take now. */
static void count_bytes(struct view *view)
{
	size_t n_bytes = view->arena.n_bytes + view->touched.n_slots * sizeof(struct map_slot);

	for (size_t i = 0; i < ARRAY_LEN(view->segs); i++)
		n_bytes += view->segs[i].n_bytes;
	(void)__atomic_add_fetch(&view->views->n_seg_bytes, n_bytes - view->n_bytes,
				 __ATOMIC_RELAXED);
	view->n_bytes = n_bytes;
}

/* Let the segment be found, and be dropped when one of its pages changes. The mutex of the view is
 * locked. */
static int add_seg(const struct making *m, const struct seg_memory *memory, struct segtable *segs)
{
	struct view *view = m->view;

	for (size_t i = 0; i < m->n_pages; i++) {
		struct touch *t = &memory->touches[i];
		uint64_t *first = map_get(&view->touched, m->pages[i]);

		if (first) {
			t->next = (struct touch *)(uintptr_t)*first;
			*first = (uintptr_t)t;
		} else if (map_put(&view->touched, m->pages[i], (uintptr_t)t) < 0) {
			return -ENOMEM;
		}
	}
	return segtable_put(segs, memory->seg->ip, memory->seg);
}

/* Make the segment at @ip, unless another thread has made it meanwhile. */
static int make_seg(struct view *view, struct segtable *segs, uint64_t ip, uint8_t mode,
		    struct seg **ret_seg)
{
	struct seg_memory memory;
	struct making m;
	int r;

	m.view = view;
	m.seg = (struct seg){ .ip = ip, .mode = mode, .is_new = true };
	m.n_pages = 0;
	r = make_way(&m, ip);
	if (r == 0)
		r = copy_seg(&m, &memory);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&view->mutex);
	*ret_seg = segtable_find(segs, ip);
	if (!*ret_seg || (*ret_seg)->kind == SEG_GONE) {
		*ret_seg = memory.seg;
		r = add_seg(&m, &memory, segs);
	}
	count_bytes(view);
	(void)pthread_mutex_unlock(&view->mutex);
	return r;
}

int view_find(struct view *view, uint64_t ip, uint8_t mode, struct seg **ret_seg)
{
	struct segtable *segs = &view->segs[mode == 64 ? 2 : mode == 32 ? 1 : 0];
	struct seg *seg;

	ip = insn_wrap(mode, ip);
	seg = segtable_find(segs, ip);
	if (!seg || seg->kind == SEG_GONE)
		return make_seg(view, segs, ip, mode, ret_seg);
	*ret_seg = seg;
	return 0;
}
