/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/mutation.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/recordwalk.h"
#include "util/perf/perfabi.h"

#define AUXTRACE_SIZE 48

struct work {
	struct mutation *m;
	const struct mutation_input *input, *other;
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

static size_t random_below(struct work *w, size_t n)
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

int mutation_input_init(struct mutation_input *input, const uint8_t *bytes, size_t size,
			bool is_bare)
{
	struct mutation_input in = { .bytes = bytes, .size = size, .is_bare = is_bare };
	struct recordwalk walk = {};
	int r;

	r = is_bare ? vec_push(&in.pt, { 0, size }) : recordwalk_read(bytes, size, &walk);
	for (size_t i = 0; i < walk.records.n && r == 0; i++) {
		const struct recordwalk_record *w = &walk.records.items[i];
		const size_t at = (size_t)w->offset;

		if (w->type != PERFABI_AUXTRACE)
			r = vec_push(&in.records, { at, (size_t)w->size });
		else if (w->size > AUXTRACE_SIZE)
			r = vec_push(&in.pt,
				     { at + AUXTRACE_SIZE, (size_t)w->size - AUXTRACE_SIZE });
	}
	recordwalk_deinit(&walk);
	if (r < 0) {
		mutation_input_deinit(&in);
		return r;
	}
	*input = in;
	return 0;
}

void mutation_input_deinit(struct mutation_input *input)
{
	vec_deinit(&input->pt);
	vec_deinit(&input->records);
}

/* One of @n areas, as far as it lies in @size bytes; of size 0 if there is none. */
static struct mutation_area random_area(struct work *w, const struct mutation_area *areas, size_t n,
					size_t size)
{
	const size_t start = random_below(w, n);

	for (size_t i = 0; i < n; i++) {
		struct mutation_area a = areas[(start + i) % n];

		if (a.offset >= size)
			continue;
		if (a.size > size - a.offset)
			a.size = size - a.offset;
		return a;
	}
	return (struct mutation_area){};
}

static struct mutation_area random_pt(struct work *w)
{
	return random_area(w, w->input->pt.items, w->input->pt.n, w->m->size);
}

static struct mutation_area random_record(struct work *w)
{
	return random_area(w, w->input->records.items, w->input->records.n, w->m->size);
}

/* Some of @a. */
static struct mutation_area random_part(struct work *w, struct mutation_area a, size_t max)
{
	const size_t at = random_below(w, a.size);
	const size_t n = 1 + random_below(w, max);

	return (struct mutation_area){ a.offset + at, n < a.size - at ? n : a.size - at };
}

static void flip_bits(struct work *w, struct mutation_area a, const char *where)
{
	const size_t n = 1 + random_below(w, 4);

	for (size_t i = 0; i < n && a.size; i++) {
		const size_t at = a.offset + random_below(w, a.size);

		w->m->bytes[at] ^= (uint8_t)(1u << random_below(w, 8));
		note(w, " flip-%s@%zu", where, at);
	}
}

static void flip_pt(struct work *w)
{
	flip_bits(w, random_pt(w), "pt");
}

static void flip_record(struct work *w)
{
	flip_bits(w, random_record(w), "record");
}

static void flip_auxtrace(struct work *w)
{
	const struct mutation_area pt = random_pt(w);

	if (pt.size && !w->input->is_bare)
		flip_bits(w, (struct mutation_area){ pt.offset - AUXTRACE_SIZE, AUXTRACE_SIZE },
			  "auxtrace");
}

static void flip_anywhere(struct work *w)
{
	flip_bits(w, (struct mutation_area){ 0, w->m->size }, "any");
}

/* Copy PT over other PT: a jump in the stream. */
static void splice_pt(struct work *w)
{
	const struct mutation_area from = random_part(w, random_pt(w), 512),
				   to = random_part(w, random_pt(w), 512);
	const size_t n = from.size < to.size ? from.size : to.size;

	memmove(w->m->bytes + to.offset, w->m->bytes + from.offset, n);
	note(w, " splice-pt %zu@%zu->%zu", n, from.offset, to.offset);
}

/* The same with another input's. */
static void splice_other(struct work *w)
{
	const struct mutation_input *o = w->other;
	const struct mutation_area from =
	    random_part(w, random_area(w, o->pt.items, o->pt.n, o->size), 512);
	const struct mutation_area to = random_part(w, random_pt(w), 512);
	const size_t n = from.size < to.size ? from.size : to.size;

	memcpy(w->m->bytes + to.offset, o->bytes + from.offset, n);
	note(w, " splice-other %zu@%zu->%zu", n, from.offset, to.offset);
}

/* Put some of another input's PT in between; what follows moves down, and over the end. */
static void insert_other(struct work *w)
{
	const struct mutation_input *o = w->other;
	const struct mutation_area from =
	    random_part(w, random_area(w, o->pt.items, o->pt.n, o->size), 64);
	const struct mutation_area pt = random_pt(w);
	const size_t at = random_below(w, pt.size);
	const size_t n = from.size < pt.size - at ? from.size : pt.size - at;
	uint8_t *bytes = w->m->bytes + pt.offset + at;

	memmove(bytes + n, bytes, pt.size - at - n);
	memcpy(bytes, o->bytes + from.offset, n);
	note(w, " insert-other %zu@%zu->%zu", n, from.offset, pt.offset + at);
}

/* Take some PT out; the rest moves up, and the end is padding. */
static void drop_pt(struct work *w)
{
	const struct mutation_area pt = random_pt(w);
	const size_t at = random_below(w, pt.size);
	size_t n = 1 + random_below(w, 64);

	if (n > pt.size - at)
		n = pt.size - at;
	memmove(w->m->bytes + pt.offset + at, w->m->bytes + pt.offset + at + n, pt.size - at - n);
	memset(w->m->bytes + pt.offset + pt.size - n, 0, n);
	note(w, " drop-pt %zu@%zu", n, pt.offset + at);
}

static void scramble_pt(struct work *w)
{
	const struct mutation_area pt = random_pt(w);
	const size_t n = 1 + random_below(w, 16);

	for (size_t i = 0, at = random_below(w, pt.size); i < n && at < pt.size; i++, at++)
		w->m->bytes[pt.offset + at] = (uint8_t)random_u64(w);
	note(w, " scramble-pt");
}

static void cut_file(struct work *w)
{
	w->m->size = random_below(w, w->m->size) + 1;
	note(w, " cut@%zu", w->m->size);
}

static void exchange_bytes(struct work *w, size_t a, size_t b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t byte = w->m->bytes[a + i];

		w->m->bytes[a + i] = w->m->bytes[b + i];
		w->m->bytes[b + i] = byte;
	}
}

/* Exchange two records of the same size, or else their bodies as far as the shorter goes. */
static void swap_records(struct work *w)
{
	const struct mutation_area a = random_record(w), b = random_record(w);
	const size_t skip = a.size == b.size ? 0 : 8, n = a.size < b.size ? a.size : b.size;

	if (n > skip)
		exchange_bytes(w, a.offset + skip, b.offset + skip, n - skip);
	note(w, " swap@%zu,%zu", a.offset, b.offset);
}

static void swap_pt(struct work *w)
{
	const struct mutation_area a = random_part(w, random_pt(w), 32),
				   b = random_part(w, random_pt(w), 32);
	const size_t n = a.size < b.size ? a.size : b.size;

	exchange_bytes(w, a.offset, b.offset, n);
	note(w, " swap-pt %zu@%zu,%zu", n, a.offset, b.offset);
}

/* Make a record one of a type that nobody reads. */
static void drop_record(struct work *w)
{
	const struct mutation_area a = random_record(w);

	if (a.size < 8)
		return;
	memset(w->m->bytes + a.offset, 0xff, 4);
	note(w, " drop@%zu", a.offset);
}

/* Overwrite a record with a copy of another that is no longer. */
static void repeat_record(struct work *w)
{
	const struct mutation_area a = random_record(w), b = random_record(w);

	if (a.size != b.size || a.size == 0)
		return;
	memmove(w->m->bytes + b.offset, w->m->bytes + a.offset, a.size);
	note(w, " repeat@%zu->%zu", a.offset, b.offset);
}

/* Overwrite a record with one of another input. */
static void take_record(struct work *w)
{
	const struct mutation_input *o = w->other;
	const struct mutation_area from = random_area(w, o->records.items, o->records.n, o->size);
	const struct mutation_area to = random_record(w);
	const size_t skip = from.size == to.size ? 0 : 8;
	const size_t n = from.size < to.size ? from.size : to.size;

	if (n <= skip)
		return;
	memcpy(w->m->bytes + to.offset + skip, o->bytes + from.offset + skip, n - skip);
	note(w, " take@%zu->%zu", from.offset, to.offset);
}

/* Give a record the time of another: the trailer's, if it is as ptd writes it. */
static void restamp(struct work *w)
{
	const struct mutation_area a = random_record(w), b = random_record(w);

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
	const struct mutation_area a = random_record(w);
	const uint64_t number = numbers[random_below(w, ARRAY_LEN(numbers))];
	const size_t size = random_below(w, 2) ? 8 : 4;
	size_t at;

	if (a.size < 16)
		return;
	at = a.offset + 8 + 4 * random_below(w, (a.size - 16) / 4 + 1);
	memcpy(w->m->bytes + at, &number, size);
	note(w, " set%zu@%zu", size, at);
}

void mutation_make(struct mutation *m, const struct mutation_input *input,
		   const struct mutation_input *other, uint64_t seed)
{
	/* PT more often than the rest: there is more of it. */
	static void (*const ways[])(struct work * w) = {
		flip_pt,      flip_pt,       flip_pt,      splice_pt,     drop_pt,
		scramble_pt,  splice_other,  insert_other, swap_pt,       flip_record,
		swap_records, drop_record,   restamp,      cut_file,      repeat_record,
		take_record,  flip_auxtrace, set_number,   flip_anywhere,
	};
	/* Of a bare stream, there is nothing else. */
	static const size_t n_pt_ways = 9;
	struct work w = { .m = m, .input = input, .other = other, .state = seed };
	size_t n;

	assert(input->size <= m->size_max);
	memcpy(m->bytes, input->bytes, input->size);
	m->size = input->size;
	m->what[0] = '\0';
	n = 1 + random_below(&w, 3);
	for (size_t i = 0; i < n; i++) {
		if (input->is_bare && random_below(&w, 10) == 0)
			cut_file(&w);
		else
			ways[random_below(&w, input->is_bare ? n_pt_ways : ARRAY_LEN(ways))](&w);
	}
}
