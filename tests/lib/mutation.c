/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/mutation.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decoder/util/perfabi.h"

#define AUXTRACE_SIZE 48

struct work {
	struct mutation *m;
	const struct walk *walk;
	uint64_t state; /* of the random numbers */
};

/* splitmix64 */
static uint64_t random_u64(struct work *w)
{
	uint64_t z = (w->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static size_t below(struct work *w, size_t n)
{
	return n ? (size_t)(random_u64(w) % n) : 0;
}

_printf_(2, 3) static void note(struct work *w, const char *format, ...)
{
	const size_t n = strlen(w->m->what);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(w->m->what + n, sizeof(w->m->what) - n, format, ap);
	va_end(ap);
}

/* A place in the bytes. */
struct area {
	size_t offset, size;
};

/* The PT of one of the AUXTRACE records; of size 0 if there is none, or no longer. */
static struct area random_pt(struct work *w)
{
	const size_t n = w->walk->records.n, start = below(w, n);

	for (size_t i = 0; i < n; i++) {
		const struct walk_record *r = &w->walk->records.items[(start + i) % n];
		const size_t offset = (size_t)r->offset + AUXTRACE_SIZE;

		if (r->type == PERFABI_AUXTRACE && r->size > AUXTRACE_SIZE &&
		    offset + 16 < w->m->size) {
			size_t size = (size_t)r->size - AUXTRACE_SIZE;

			if (size > w->m->size - offset)
				size = w->m->size - offset;
			return (struct area){ offset, size };
		}
	}
	return (struct area){};
}

/* A record without bytes behind it. */
static struct area random_record(struct work *w)
{
	const size_t n = w->walk->records.n, start = below(w, n);

	for (size_t i = 0; i < n; i++) {
		const struct walk_record *r = &w->walk->records.items[(start + i) % n];

		if (r->type != PERFABI_AUXTRACE && r->offset + r->size <= w->m->size)
			return (struct area){ (size_t)r->offset, (size_t)r->size };
	}
	return (struct area){};
}

static void flip(struct work *w, struct area a, const char *where)
{
	const size_t n = 1 + below(w, 4);

	for (size_t i = 0; i < n && a.size; i++) {
		const size_t at = a.offset + below(w, a.size);

		w->m->bytes[at] ^= (uint8_t)(1u << below(w, 8));
		note(w, " flip-%s@%zu", where, at);
	}
}

static void flip_pt(struct work *w)
{
	flip(w, random_pt(w), "pt");
}

static void flip_record(struct work *w)
{
	flip(w, random_record(w), "record");
}

static void flip_auxtrace(struct work *w)
{
	const struct area pt = random_pt(w);

	if (pt.size)
		flip(w, (struct area){ pt.offset - AUXTRACE_SIZE, AUXTRACE_SIZE }, "auxtrace");
}

static void flip_anywhere(struct work *w)
{
	flip(w, (struct area){ 0, w->m->size }, "any");
}

/* Copy PT over other PT: a jump in the stream. */
static void splice_pt(struct work *w)
{
	const struct area from = random_pt(w), to = random_pt(w);
	const size_t a = below(w, from.size), b = below(w, to.size);
	size_t n = 1 + below(w, 512);

	if (n > from.size - a)
		n = from.size - a;
	if (n > to.size - b)
		n = to.size - b;
	memmove(w->m->bytes + to.offset + b, w->m->bytes + from.offset + a, n);
	note(w, " splice-pt %zu@%zu->%zu", n, from.offset + a, to.offset + b);
}

/* Take some PT out; the rest moves up, and the end is padding. */
static void drop_pt(struct work *w)
{
	const struct area pt = random_pt(w);
	const size_t at = below(w, pt.size);
	size_t n = 1 + below(w, 64);

	if (n > pt.size - at)
		n = pt.size - at;
	memmove(w->m->bytes + pt.offset + at, w->m->bytes + pt.offset + at + n, pt.size - at - n);
	memset(w->m->bytes + pt.offset + pt.size - n, 0, n);
	note(w, " drop-pt %zu@%zu", n, pt.offset + at);
}

static void scramble_pt(struct work *w)
{
	const struct area pt = random_pt(w);
	const size_t n = 1 + below(w, 16);

	for (size_t i = 0, at = below(w, pt.size); i < n && at < pt.size; i++, at++)
		w->m->bytes[pt.offset + at] = (uint8_t)random_u64(w);
	note(w, " scramble-pt");
}

static void cut(struct work *w)
{
	w->m->size = below(w, w->m->size) + 1;
	note(w, " cut@%zu", w->m->size);
}

/* Exchange two records of the same size, or else their bodies as far as the shorter goes. */
static void swap_records(struct work *w)
{
	const struct area a = random_record(w), b = random_record(w);
	const size_t skip = a.size == b.size ? 0 : 8, n = a.size < b.size ? a.size : b.size;

	for (size_t i = skip; i < n; i++) {
		const uint8_t byte = w->m->bytes[a.offset + i];

		w->m->bytes[a.offset + i] = w->m->bytes[b.offset + i];
		w->m->bytes[b.offset + i] = byte;
	}
	note(w, " swap@%zu,%zu", a.offset, b.offset);
}

/* Make a record one of a type that nobody reads. */
static void drop_record(struct work *w)
{
	const struct area a = random_record(w);

	if (a.size < 8)
		return;
	memset(w->m->bytes + a.offset, 0xff, 4);
	note(w, " drop@%zu", a.offset);
}

/* Overwrite a record with a copy of another that is no longer. */
static void repeat_record(struct work *w)
{
	const struct area a = random_record(w), b = random_record(w);

	if (a.size != b.size || a.size == 0)
		return;
	memmove(w->m->bytes + b.offset, w->m->bytes + a.offset, a.size);
	note(w, " repeat@%zu->%zu", a.offset, b.offset);
}

/* Give a record the time of another: the trailer's, if it is as ptd writes it. */
static void restamp(struct work *w)
{
	const struct area a = random_record(w), b = random_record(w);

	if (a.size < 40 || b.size < 40)
		return;
	memcpy(w->m->bytes + b.offset + b.size - 24, w->m->bytes + a.offset + a.size - 24, 8);
	note(w, " restamp@%zu<-%zu", b.offset, a.offset);
}

/* Set a number in a record to one at the edge. */
static void set_number(struct work *w)
{
	static const uint64_t numbers[] = { 0,
					    1,
					    0x7f,
					    0xffff,
					    0x7fffffff,
					    0xffffffff,
					    0x800000000000,
					    0x7fffffffffffffff,
					    0x8000000000000000,
					    0xfffffffffffff000,
					    UINT64_MAX };
	const struct area a = random_record(w);
	const uint64_t number = numbers[below(w, ARRAY_LEN(numbers))];
	const size_t size = below(w, 2) ? 8 : 4;
	size_t at;

	if (a.size < 16)
		return;
	at = a.offset + 8 + 4 * below(w, (a.size - 16) / 4 + 1);
	memcpy(w->m->bytes + at, &number, size);
	note(w, " set%zu@%zu", size, at);
}

void mutation_make(struct mutation *m, const uint8_t *bytes, size_t size, const struct walk *walk,
		   uint64_t seed)
{
	/* PT more often than the rest: there is more of it. */
	static void (*const ways[])(struct work * w) = {
		flip_pt,     flip_pt,       flip_pt,       splice_pt,   drop_pt,
		scramble_pt, flip_record,   swap_records,  drop_record, restamp,
		cut,         repeat_record, flip_auxtrace, set_number,  flip_anywhere,
	};
	struct work w = { .m = m, .walk = walk, .state = seed };
	size_t n;

	assert(size <= m->size_max);
	memcpy(m->bytes, bytes, size);
	m->size = size;
	m->what[0] = '\0';
	n = 1 + below(&w, 3);
	for (size_t i = 0; i < n; i++)
		ways[below(&w, ARRAY_LEN(ways))](&w);
}
