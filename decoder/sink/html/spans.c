/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/html/spans.h"

#include <errno.h>
#include <stdlib.h>

#include "util/map.h"

/* Parts are looked through when there are this many. */
#define PARTS_MAX (1u << 19)

/* The first resolution is the time of all spans, divided by this. */
#define STEPS_MAX (1u << 17)

#define SAMPLES 4096

void spans_deinit(struct spans *spans)
{
	vec_deinit(&spans->items);
	vec_deinit(&spans->parts);
	vec_deinit(&spans->part_of_track);
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Return: the number of the track's part; NULL: no memory. */
static uint32_t *get_part(struct spans *spans, uint32_t track)
{
	if (spans->parts.n == 0 && vec_push(&spans->parts, { .is_over = true }) < 0)
		return NULL;
	return vec_at(&spans->part_of_track, track, SPANS_NO_PART);
}

/* Return: whether the function is on no row that is shown. */
static bool is_too_deep(const struct span *span)
{
	return span->kind == SPAN_FUNCTION && span->part == SPANS_NO_PART &&
	       span->row >= SPANS_ROWS;
}

/* Give the spans of parts that are over their rows, and drop those that are too deep. Parts that
 * go on get the new @numbers. */
static void settle_spans(struct spans *spans, const uint32_t *numbers)
{
	size_t n = 0;

	for (size_t i = 0; i < spans->items.n; i++) {
		struct span *span = &spans->items.items[i];
		const struct spans_part *part = &spans->parts.items[span->part];

		if (span->part != SPANS_NO_PART && part->is_over)
			span->row -= part->first_row;
		span->part = numbers[span->part];
		if (is_too_deep(span))
			spans->n_too_deep += span->n;
		else if (n++ != i)
			spans->items.items[n - 1] = *span;
	}
	spans->items.n = n;
}

/*
 * Rows of parts that are over become final, and these parts are forgotten. Return: 0 or -ENOMEM.
 */
static int settle_parts(struct spans *spans)
{
	uint32_t *numbers = calloc(spans->parts.n + 1, sizeof(*numbers));
	uint32_t n = 1;

	if (!numbers)
		return -ENOMEM;
	for (uint32_t i = 1; i < spans->parts.n; i++)
		numbers[i] = spans->parts.items[i].is_over ? SPANS_NO_PART : n++;
	settle_spans(spans, numbers);
	for (size_t i = 1; i < spans->parts.n; i++)
		if (numbers[i] != SPANS_NO_PART)
			spans->parts.items[numbers[i]] = spans->parts.items[i];
	if (spans->parts.n > 0)
		spans->parts.n = n;
	for (size_t i = 0; i < spans->part_of_track.n; i++)
		spans->part_of_track.items[i] = numbers[spans->part_of_track.items[i]];
	free(numbers);
	return 0;
}

int spans_begin_part(struct spans *spans, uint32_t track)
{
	uint32_t *number;
	int r = 0;

	if (spans->parts.n >= PARTS_MAX)
		r = settle_parts(spans);
	if (r < 0)
		return r;
	number = get_part(spans, track);
	if (!number)
		return -ENOMEM;
	if (*number != SPANS_NO_PART)
		spans->parts.items[*number].is_over = true;
	*number = (uint32_t)spans->parts.n;
	return vec_push(&spans->parts, {});
}

void spans_see_row(struct spans *spans, uint32_t track, int32_t row)
{
	struct spans_part *part = &spans->parts.items[spans->part_of_track.items[track]];

	if (row < part->first_row)
		part->first_row = row;
}

/* --- merging ---------------------------------------------------------------------------------- */

/* Return: a number that the spans of one row of one track have in common. */
static uint64_t row_key(const struct span *span)
{
	return (uint64_t)(span->track * _SPAN_KINDS + span->kind) << 44 |
	       (uint64_t)(span->part & 0xffffff) << 20 | ((uint32_t)span->row & 0xfffff);
}

static void merge(struct span *into, const struct span *span)
{
	if (into->value != span->value || span->is_mixed)
		into->is_mixed = true;
	if (span->busy > into->busy)
		into->value = span->value;
	if (span->t < into->t) {
		into->duration += into->t - span->t;
		into->t = span->t;
	}
	if (span->t + span->duration > into->t + into->duration)
		into->duration = span->t + span->duration - into->t;
	into->busy += span->busy;
	into->n_insns += span->n_insns;
	into->n = into->n + span->n > into->n ? into->n + span->n : UINT32_MAX;
}

static uint64_t end_of(const struct span *span)
{
	return span->t + span->duration;
}

/* Merge what is old and shorter than the resolution. @ret_n_old is how much is old then. */
static int merge_old(struct spans *spans, size_t *ret_n_old)
{
	const uint64_t resolution = spans->resolution;
	struct map last = {}; /* the old span of each row that came last */
	size_t n = 0, n_old = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < spans->items.n; i++) {
		const struct span span = spans->items.items[i];
		const uint64_t key = row_key(&span), *found;
		struct span *into;

		if (end_of(&span) >= spans->t_whole) {
			spans->items.items[n++] = span;
			continue;
		}
		found = map_get(&last, key);
		into = found ? &spans->items.items[*found] : NULL;
		if (into && span.duration < resolution && into->duration < resolution &&
		    into->t / resolution == span.t / resolution) {
			merge(into, &span);
			continue;
		}
		spans->items.items[n] = span;
		r = map_put(&last, key, n++);
		n_old++;
	}
	map_deinit(&last);
	spans->items.n = n;
	*ret_n_old = n_old;
	return r;
}

static int by_number(const void *pa, const void *pb)
{
	const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return COMPARE(a, b);
}

/* Find out, by a sample, since when spans are among the SPANS_WHOLE that end last. */
static void find_whole(struct spans *spans)
{
	uint64_t ends[SAMPLES];
	const size_t step = spans->items.n / SAMPLES, n_whole = SPANS_WHOLE / step;
	uint64_t t;

	for (size_t i = 0; i < SAMPLES; i++)
		ends[i] = end_of(&spans->items.items[i * step]);
	qsort(ends, SAMPLES, sizeof(*ends), by_number);
	t = ends[SAMPLES - n_whole];
	/* Where the trace has no finer time, too many end at once: none of those is kept. */
	t += ends[SAMPLES - 2 * n_whole] == t;
	if (t > spans->t_whole)
		spans->t_whole = t;
}

static uint64_t first_resolution(const struct spans *spans)
{
	const struct span *items = spans->items.items;
	uint64_t first = UINT64_MAX, last = 0, resolution = 1;

	for (size_t i = 0; i < spans->items.n; i++) {
		if (items[i].t < first)
			first = items[i].t;
		if (items[i].t > last)
			last = items[i].t;
	}
	while (resolution < (last - first) / STEPS_MAX)
		resolution *= 2;
	return resolution;
}

/* There are too many spans: keep those that end last, and make less of the others. */
static int make_room(struct spans *spans)
{
	size_t n_old;
	int r = settle_parts(spans);

	if (r < 0)
		return r;
	if (spans->items.n <= SPANS_OLD + SPANS_WHOLE)
		return 0;
	find_whole(spans);
	if (spans->resolution == 0)
		spans->resolution = first_resolution(spans);
	for (;;) {
		r = merge_old(spans, &n_old);
		if (r < 0 || n_old <= SPANS_OLD || spans->resolution >> 62)
			return r;
		spans->resolution *= 2;
	}
}

int spans_add(struct spans *spans, const struct span *span)
{
	const uint32_t *part;
	int r = 0;

	if (span->kind == SPAN_FUNCTION && span->row >= SPANS_ROWS) {
		spans->n_too_deep++;
		return 0;
	}
	if (spans->items.n >= SPANS_MAX)
		r = make_room(spans);
	part = get_part(spans, span->track);
	if (r == 0 && (!part || vec_push(&spans->items, *span) < 0))
		r = -ENOMEM;
	if (r == 0)
		spans->items.items[spans->items.n - 1].part =
		    span->kind == SPAN_FUNCTION ? *part : SPANS_NO_PART;
	return r;
}

/* --- the end ---------------------------------------------------------------------------------- */

static int compare(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	return COMPARE(a->track, b->track)
		       ?: COMPARE(a->kind, b->kind)
		       ?: COMPARE(a->row, b->row)
		       ?: COMPARE(a->t, b->t)
		       ?: COMPARE(a->duration, b->duration);
}

int spans_finish(struct spans *spans)
{
	int r;

	for (size_t i = 0; i < spans->parts.n; i++)
		spans->parts.items[i].is_over = true;
	for (size_t i = 0; i < spans->part_of_track.n; i++)
		spans->part_of_track.items[i] = SPANS_NO_PART;
	r = settle_parts(spans);
	if (r < 0)
		return r;
	vec_sort(&spans->items, compare);
	return 0;
}
