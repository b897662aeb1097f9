/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/codeprogram.h"

#include <errno.h>
#include <string.h>

#include "daemon/objects/codeimage.h"
#include "daemon/plugin/coderecord.h"

#define PAGE 4096u

#define BATCHES_MAX 32u

/* Refused changes take memory, too. After this many, the code of a program is given up. */
#define REFUSED_MAX 65536u

/* The first bytes in a page. Forks share it until one of them adds to it. */
struct codepage {
	size_t n_refs;
	uid_t uid; /* who has it in their share */
	uint64_t address;
	uint8_t bytes[PAGE];
	uint8_t batch[PAGE];         /* the batch of each byte; 0: not known */
	uint64_t times[BATCHES_MAX]; /* of batch 1 and so on; the oldest are joined */
	uint8_t n_batches;
};

/* A change. Immutable, and shared by forks. */
struct codechange {
	size_t n_refs;
	uid_t uid; /* likewise */
	uint64_t time;
	uint64_t address;
	uint32_t size;
	bool known; /* the bytes follow */
	uint8_t bytes[];
};

/* --- lost code -------------------------------------------------------------------------------- */

void lostcode_deinit(struct lostcode *lost)
{
	vec_deinit(&lost->ranges);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct lostcode_range range_hull(const struct lostcode_range *a,
					const struct lostcode_range *b)
{
	return (struct lostcode_range){
		.start = min_u64(a->start, b->start),
		.last = max_u64(a->last, b->last),
		.time = min_u64(a->time, b->time),
	};
}

/* Return: whether @a ends before @b and does not touch it. */
static bool is_apart(const struct lostcode_range *a, const struct lostcode_range *b)
{
	return a->last < b->start && b->start - a->last > 1;
}

/* Replace all ranges by one that has them all, to save memory. */
static void lostcode_join(struct lostcode *lost)
{
	for (; lost->ranges.n > 1; lost->ranges.n--)
		lost->ranges.items[0] =
		    range_hull(&lost->ranges.items[0], &lost->ranges.items[lost->ranges.n - 1]);
}

static int add_range(struct lostcode *lost, struct lostcode_range range)
{
	struct lostcode_range *items;
	size_t from, to;

	if (lost->ranges.n == LOSTCODE_MAX)
		lostcode_join(lost);
	if (vec_reserve(&lost->ranges, 1) < 0)
		return -ENOMEM;
	items = lost->ranges.items;
	from = vec_bisect(&lost->ranges, r, is_apart(r, &range));
	for (to = from; to < lost->ranges.n && !is_apart(&range, &items[to]); to++)
		range = range_hull(&range, &items[to]);
	memmove(items + from + 1, items + to, (lost->ranges.n - to) * sizeof(*items));
	lost->ranges.n = lost->ranges.n - (to - from) + 1;
	items[from] = range;
	return 0;
}

int lostcode_add(struct lostcode *lost, uint64_t address, uint64_t size, uint64_t time)
{
	if (size == 0)
		return 0;
	return add_range(lost, (struct lostcode_range){
				   .start = address - address % PAGE,
				   .last = (address + (size - 1)) | (PAGE - 1),
				   .time = time,
			       });
}

int lostcode_add_all(struct lostcode *lost, const struct lostcode *other)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < other->ranges.n; i++)
		r = add_range(lost, other->ranges.items[i]);
	return r;
}

/* --- pages and changes ------------------------------------------------------------------------ */

static void page_unref(struct coderoom *room, struct codepage *page)
{
	if (--page->n_refs > 0)
		return;
	share_give(&room->share, page->uid, sizeof(*page));
	free(page);
}

static void change_unref(struct coderoom *room, struct codechange *change)
{
	if (--change->n_refs > 0)
		return;
	share_give(&room->share, change->uid, sizeof(*change) + (change->known ? change->size : 0));
	free(change);
}

static void program_clear(struct coderoom *room, struct codeprogram *program)
{
	for (size_t i = 0; i < program->pages.n; i++)
		page_unref(room, program->pages.items[i]);
	vec_deinit(&program->pages);
	for (size_t i = 0; i < program->changes.n; i++)
		change_unref(room, program->changes.items[i]);
	vec_deinit(&program->changes);
}

static size_t lost_size(const struct codeprogram *program)
{
	return program->lost.ranges.n * sizeof(*program->lost.ranges.items);
}

/* Count what the program's list of lost code takes, before it changes and afterwards. */
static void give_lost(struct coderoom *room, const struct codeprogram *program)
{
	share_give(&room->share, program->info.uid, lost_size(program));
}

static void take_lost(struct coderoom *room, const struct codeprogram *program)
{
	share_take(&room->share, program->info.uid, lost_size(program));
}

struct codeprogram *codeprogram_free(struct coderoom *room, struct codeprogram *program)
{
	program_clear(room, program);
	give_lost(room, program);
	lostcode_deinit(&program->lost);
	free(program);
	return NULL;
}

int codeprogram_lose(struct coderoom *room, struct codeprogram *program, uint64_t address,
		     uint64_t size, uint64_t time)
{
	int r;

	give_lost(room, program);
	r = lostcode_add(&program->lost, address, size, time);
	take_lost(room, program);
	return r;
}

/* Add the places where @program changed its code. Return: 0 or -ENOMEM. */
static int add_changed(struct lostcode *lost, const struct codeprogram *program)
{
	int r = lostcode_add_all(lost, &program->lost);

	for (size_t i = 0; r == 0 && i < program->changes.n; i++) {
		const struct codechange *c = program->changes.items[i];

		r = lostcode_add(lost, c->address, c->size, c->time);
	}
	return r;
}

int codeprogram_give_up(struct coderoom *room, struct codeprogram *program)
{
	struct lostcode lost = {};
	const int r = add_changed(&lost, program);

	if (r < 0) {
		lostcode_deinit(&lost);
		return r;
	}
	program_clear(room, program);
	give_lost(room, program);
	lostcode_deinit(&program->lost);
	program->lost = lost;
	take_lost(room, program);
	program->given_up = true;
	return 0;
}

bool codeprogram_join_lost(struct coderoom *room, struct codeprogram *program)
{
	if (program->lost.ranges.n <= 1)
		return false;
	give_lost(room, program);
	lostcode_join(&program->lost);
	take_lost(room, program);
	return true;
}

/* --- what is added ---------------------------------------------------------------------------- */

/* Return: 0, the parent's page as it was at @time; -ENOBUFS or -ENOMEM. */
static int inherit_page(struct coderoom *room, struct codepage *page, uid_t uid, uint64_t time,
			struct codepage **ret_page)
{
	struct codepage *own;
	int r;

	if (page->times[page->n_batches - 1] <= time) {
		page->n_refs++;
		*ret_page = page;
		return 0;
	}
	/* The beginning of the child was handed over late. */
	r = room->make(room->userdata, uid, sizeof(*own));
	if (r < 0)
		return r;
	own = malloc(sizeof(*own));
	if (!own)
		return -ENOMEM;
	*own = *page;
	own->n_refs = 1;
	own->uid = uid;
	share_take(&room->share, own->uid, sizeof(*own));
	for (size_t i = 0; i < PAGE; i++)
		if (own->batch[i] > 0 && own->times[own->batch[i] - 1] > time)
			own->batch[i] = 0;
	*ret_page = own;
	return 0;
}

int codeprogram_inherit(struct coderoom *room, struct codeprogram *child,
			const struct codeprogram *parent, uint64_t time)
{
	int r;

	r = vec_reserve(&child->pages, parent->pages.n);
	if (r == 0)
		r = vec_reserve(&child->changes, parent->changes.n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < parent->pages.n; i++) {
		r = inherit_page(room, parent->pages.items[i], child->info.uid, time,
				 &child->pages.items[child->pages.n]);
		if (r == -ENOMEM)
			return r;
		child->pages.n += r == 0;
	}
	for (size_t i = 0; i < parent->changes.n && parent->changes.items[i]->time <= time; i++) {
		parent->changes.items[i]->n_refs++;
		child->changes.items[child->changes.n++] = parent->changes.items[i];
	}
	child->n_unknown = parent->n_unknown;
	child->given_up = parent->given_up;
	r = lostcode_add_all(&child->lost, &parent->lost);
	take_lost(room, child);
	return r;
}

static size_t page_index(const struct codeprogram *program, uint64_t address)
{
	return vec_bisect(&program->pages, page, (*page)->address < address);
}

/* Return: the program's page at @address, which may be shared; NULL if it has none. */
static struct codepage *page_at(const struct codeprogram *program, uint64_t address)
{
	const size_t i = page_index(program, address);

	return i < program->pages.n && program->pages.items[i]->address == address
		   ? program->pages.items[i]
		   : NULL;
}

/* Get a page at @address that the program does not share. Return: 0, -ENOBUFS or -ENOMEM. */
static int own_page(struct coderoom *room, struct codeprogram *program, uint64_t address,
		    struct codepage **ret_page)
{
	const size_t i = page_index(program, address);
	struct codepage *shared = page_at(program, address), *page;
	int r;

	if (shared && shared->n_refs == 1) {
		*ret_page = shared;
		return 0;
	}
	r = room->make(room->userdata, program->info.uid, sizeof(*page));
	if (r == 0)
		r = vec_reserve(&program->pages, 1);
	if (r < 0)
		return r;
	page = calloc(1, sizeof(*page));
	if (!page)
		return -ENOMEM;
	if (shared) {
		*page = *shared;
		program->pages.items[i] = page;
		page_unref(room, shared);
	} else {
		page->address = address;
		memmove(program->pages.items + i + 1, program->pages.items + i,
			(program->pages.n - i) * sizeof(page));
		program->pages.items[i] = page;
		program->pages.n++;
	}
	page->n_refs = 1;
	page->uid = program->info.uid;
	share_take(&room->share, page->uid, sizeof(*page));
	*ret_page = page;
	return 0;
}

/* @bytes: NULL if they are not known. Return: 0 or -ENOMEM. */
static int add_change(struct coderoom *room, struct codeprogram *program,
		      const struct coderecord *record, const uint8_t *bytes)
{
	const size_t n_bytes = bytes ? record->n_bytes : 0, n = program->changes.n;
	uint64_t time = record->time;
	struct codechange *change;

	if (vec_reserve(&program->changes, 1) < 0)
		return -ENOMEM;
	change = malloc(sizeof(*change) + n_bytes);
	if (!change)
		return -ENOMEM;
	/* Changes come in the order of time, unless another process has written to the ring,
	 * too. */
	if (n > 0 && program->changes.items[n - 1]->time > time)
		time = program->changes.items[n - 1]->time;
	*change = (struct codechange){ .n_refs = 1,
				       .uid = program->info.uid,
				       .time = time,
				       .address = record->address,
				       .size = record->n_bytes,
				       .known = bytes };
	if (bytes)
		memcpy(change->bytes, bytes, n_bytes);
	share_take(&room->share, change->uid, sizeof(*change) + n_bytes);
	program->changes.items[program->changes.n++] = change;
	return 0;
}

/* Begin another batch of the page's bytes. Return: its number. */
static uint8_t begin_batch(struct codepage *page, uint64_t time)
{
	const uint8_t n_older = BATCHES_MAX / 2;

	if (page->n_batches == BATCHES_MAX) {
		for (size_t i = 0; i < PAGE; i++)
			if (page->batch[i] > 0)
				page->batch[i] =
				    page->batch[i] <= n_older ? 1 : page->batch[i] - n_older + 1;
		page->n_batches = BATCHES_MAX - n_older + 1;
		memmove(page->times, page->times + n_older - 1,
			page->n_batches * sizeof(*page->times));
	}
	if (page->n_batches > 0 && page->times[page->n_batches - 1] > time)
		time = page->times[page->n_batches - 1];
	page->times[page->n_batches] = time;
	return ++page->n_batches;
}

/* Return: 0; -ENOBUFS if some of the bytes were refused; or -ENOMEM. */
static int add_first(struct coderoom *room, struct codeprogram *program,
		     const struct coderecord *record, const uint8_t *bytes)
{
	for (size_t done = 0, n; done < record->n_bytes; done += n) {
		const uint64_t address = record->address + done;
		const size_t at = address % PAGE;
		struct codepage *page;
		uint8_t batch;
		int r;

		n = record->n_bytes - done < PAGE - at ? record->n_bytes - done : PAGE - at;
		r = own_page(room, program, address - at, &page);
		if (r < 0)
			return r;
		batch = begin_batch(page, record->time);
		for (size_t i = 0; i < n; i++) {
			if (page->batch[at + i] > 0)
				continue;
			page->bytes[at + i] = bytes[done + i];
			page->batch[at + i] = batch;
		}
	}
	return 0;
}

int codeprogram_add(struct coderoom *room, struct codeprogram *program,
		    const struct coderecord *record, const uint8_t *bytes)
{
	if (program->given_up)
		return -ENOBUFS;
	if (record->kind == CODERECORD_NEW)
		return add_first(room, program, record, bytes);
	return room->make(room->userdata, program->info.uid,
			  sizeof(struct codechange) + record->n_bytes)
		   ?: add_change(room, program, record, bytes);
}

int codeprogram_refuse(struct coderoom *room, struct codeprogram *program,
		       const struct coderecord *record)
{
	int r = 0;

	if (!program->given_up && ++program->n_unknown > REFUSED_MAX)
		r = codeprogram_give_up(room, program);
	if (r < 0)
		return r;
	if (!program->given_up)
		return add_change(room, program, record, NULL);
	/* There were no known bytes that a decoder could take for these. */
	return record->kind == CODERECORD_NEW ? 0
					      : codeprogram_lose(room, program, record->address,
								 record->n_bytes, record->time);
}

/* --- images ----------------------------------------------------------------------------------- */

static int add_page(struct codeimage *image, const struct codepage *page)
{
	int r = 0;

	for (size_t at = 0, n; r == 0 && at < PAGE; at += n) {
		for (n = 1; at + n < PAGE && (page->batch[at + n] > 0) == (page->batch[at] > 0);
		     n++)
			;
		if (page->batch[at] > 0)
			r = codeimage_add_first(image, page->address + at, page->bytes + at, n);
	}
	return r;
}

int codeprogram_make_image(const struct codeprogram *program, struct codeimage *image)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < program->pages.n; i++)
		r = add_page(image, program->pages.items[i]);
	for (size_t i = 0; r == 0 && i < program->changes.n; i++) {
		const struct codechange *c = program->changes.items[i];

		r = codeimage_add(image, c->time, c->address, c->known ? c->bytes : NULL, c->size);
	}
	return r;
}

static int compare_times(const void *pa, const void *pb)
{
	const struct lostcode_range *a = pa, *b = pb;

	return a->time < b->time ? -1 : a->time > b->time;
}

int codeprogram_make_lost_image(const struct codeprogram *program, struct codeimage *image)
{
	_cleanup_(lostcode_deinit) struct lostcode lost = {};
	int r = add_changed(&lost, program);

	vec_sort(&lost.ranges, compare_times);
	for (size_t i = 0; r == 0 && i < lost.ranges.n; i++) {
		const struct lostcode_range *range = &lost.ranges.items[i];

		r = codeimage_add(image, range->time, range->start, NULL,
				  range->last - range->start + 1 ?: UINT64_MAX);
	}
	return r;
}
