/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/trigger/passages.h"

#include <stdlib.h>
#include <string.h>

void passages_deinit(struct passages *passages)
{
	vec_deinit(&passages->open);
	vec_deinit(&passages->moments);
}

void passages_forget(struct passages *passages)
{
	passages->open.n = 0;
	passages->moments.n = 0;
}

int passages_add(struct passages *passages, const struct moment *moment)
{
	return vec_push(&passages->moments, *moment);
}

static void close_passage(struct passages *passages, size_t i)
{
	memmove(&passages->open.items[i], &passages->open.items[i + 1],
		(--passages->open.n - i) * sizeof(passages->open.items[0]));
}

/* Return: index of the passage of the thread @tid; the number of passages if it has none. */
static size_t find_passage(const struct passages *passages, uint32_t tid)
{
	size_t i = 0;

	while (i < passages->open.n && passages->open.items[i].tid != tid)
		i++;
	return i;
}

static void begin(struct passages *passages, const struct moment *moment)
{
	const size_t i = find_passage(passages, moment->tid);

	if (i < passages->open.n) {
		/* The function was called from itself, and its frame is still there. */
		if (passages->has_return && moment->sp < passages->open.items[i].sp)
			return;
		close_passage(passages, i);
	}
	/* Without memory, the passage is not looked at. */
	if (passages->open.n < PASSAGES_MAX)
		(void)!vec_push(&passages->open, *moment);
}

static void end(struct passages *passages, const struct moment *moment)
{
	const size_t i = find_passage(passages, moment->tid);

	if (i == passages->open.n)
		return;
	/* A return has taken the return address from the stack. */
	if (!passages->has_return || moment->sp > passages->open.items[i].sp)
		close_passage(passages, i);
}

static void forget_process(struct passages *passages, uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < passages->open.n; i++)
		if (passages->open.items[i].pid != pid)
			passages->open.items[n++] = passages->open.items[i];
	passages->open.n = n;
}

static void apply(struct passages *passages, const struct moment *moment)
{
	size_t i;

	switch (moment->kind) {
	case MOMENT_BEGIN:
		begin(passages, moment);
		break;
	case MOMENT_END:
		end(passages, moment);
		break;
	case MOMENT_GONE:
		i = find_passage(passages, moment->tid);
		if (i < passages->open.n)
			close_passage(passages, i);
		break;
	case MOMENT_EXEC:
		forget_process(passages, moment->pid);
		break;
	}
}

/* Return: whether the oldest passage has taken longer than the limit at @now_ns. */
static bool is_late(const struct passages *passages, uint64_t now_ns, struct moment *ret_hit)
{
	const struct moment *oldest = passages->open.items;

	if (passages->open.n == 0 || now_ns < oldest->time_ns ||
	    now_ns - oldest->time_ns <= passages->limit_ns)
		return false;
	*ret_hit = *oldest;
	ret_hit->time_ns += passages->limit_ns;
	return true;
}

static int compare_moments(const void *pa, const void *pb)
{
	const struct moment *a = pa, *b = pb;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

bool passages_find(struct passages *passages, uint64_t now_ns, struct moment *ret_hit)
{
	const struct moment *moments = passages->moments.items;
	bool is_found = false;
	size_t i = 0;

	if (passages->moments.n > 1)
		qsort(passages->moments.items, passages->moments.n, sizeof(*moments),
		      compare_moments);
	for (; i < passages->moments.n && moments[i].time_ns < now_ns && !is_found; i++) {
		is_found = is_late(passages, moments[i].time_ns, ret_hit);
		apply(passages, &moments[i]);
	}
	if (is_found || is_late(passages, now_ns, ret_hit)) {
		passages_forget(passages);
		return true;
	}
	if (i > 0) {
		passages->moments.n -= i;
		memmove(passages->moments.items, &moments[i],
			passages->moments.n * sizeof(*moments));
	}
	return false;
}
