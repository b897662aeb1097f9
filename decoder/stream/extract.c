/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/extract.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sideband/timeline.h"
#include "ptd/calls.h"
#include "util/map.h"
#include "util/vec.h"

/* Numbers that are asked for; none: all are. */
struct ids {
	struct map set;
	const struct map *scope; /* borrowed: another set; or NULL */
	bool is_all;
};

/* Names that are asked for; none: all are. */
struct names {
	char **items;
	size_t n;
};

/* What is known of a symbol, an object or a thread. */
enum {
	UNDECIDED,
	ASKED_FOR,
	LEFT_OUT,
};

struct extract_thread {
	uint64_t t0;    /* of its last slice */
	bool has_kept;  /* an instruction */
	bool has_last;  /* it is known where its last instructions begin: */
	uint64_t since; /* a time, */
	uint64_t n;     /* and how many instructions from then on come before; in a search, how
			 * many there are */
	bool keeps;     /* the last instruction was kept */
	bool is_broken; /* instructions were left out behind the last one that was kept */
};

struct extract {
	const struct timeline *timeline; /* borrowed; or NULL */
	uint64_t from, to;               /* times */
	uint64_t last;                   /* instructions of each thread; 0: all */
	uint64_t asked_from, asked_to;   /* the times, while a search has others */
	bool is_search, has_kept;
	struct ids cpus, pids, tids;
	struct names comms, symbols, objects;

	VEC(uint8_t) by_symbol; /* by id, up to the largest that was looked at */
	VEC(uint8_t) by_object;

	struct map by_thread; /* see key_of() → index into threads */
	VEC(struct extract_thread) threads;

	/* The batch. */
	VEC(struct ptd_run) runs;
	VEC(struct ptd_logged_call) calls;
	VEC(struct ptd_mark) marks;
};

/* --- its life --------------------------------------------------------------------------------- */

bool extract_is_part(const struct ptd_part *part)
{
	return part->time || part->n_pids || part->n_tids || part->n_cpus || part->n_comms ||
	       part->n_symbols || part->n_objects || part->last;
}

static int copy_ids(struct ids *ids, const uint32_t *items, size_t n)
{
	int r = 0;

	ids->is_all = n == 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = map_put(&ids->set, items[i], 0);
	return r;
}

static int copy_names(struct names *names, const char *const *items, size_t n)
{
	names->items = calloc(n ? n : 1, sizeof(*names->items));
	if (!names->items)
		return -ENOMEM;
	for (; names->n < n; names->n++) {
		names->items[names->n] = strdup(items[names->n]);
		if (!names->items[names->n])
			return -ENOMEM;
	}
	return 0;
}

static void free_names(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
}

int extract_new(const struct ptd_part *part, const struct map *scope,
		const struct timeline *timeline, struct extract **ret_extract)
{
	_cleanup_(extract_freep) struct extract *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->timeline = timeline;
	e->to = UINT64_MAX;
	e->last = part->last;
	r = copy_ids(&e->cpus, part->cpus, part->n_cpus);
	if (r == 0)
		r = copy_ids(&e->pids, part->pids, part->n_pids);
	if (r == 0)
		r = copy_ids(&e->tids, part->tids, part->n_tids);
	e->pids.scope = scope;
	e->pids.is_all = e->pids.is_all && !scope;
	if (r == 0)
		r = copy_names(&e->comms, part->comms, part->n_comms);
	if (r == 0)
		r = copy_names(&e->symbols, part->symbols, part->n_symbols);
	if (r == 0)
		r = copy_names(&e->objects, part->objects, part->n_objects);
	if (r < 0)
		return r;
	*ret_extract = TAKE(e);
	return 0;
}

struct extract *extract_free(struct extract *extract)
{
	if (!extract)
		return NULL;
	map_deinit(&extract->cpus.set);
	map_deinit(&extract->pids.set);
	map_deinit(&extract->tids.set);
	free_names(&extract->comms);
	free_names(&extract->symbols);
	free_names(&extract->objects);
	vec_deinit(&extract->by_symbol);
	vec_deinit(&extract->by_object);
	map_deinit(&extract->by_thread);
	vec_deinit(&extract->threads);
	vec_deinit(&extract->runs);
	vec_deinit(&extract->calls);
	vec_deinit(&extract->marks);
	free(extract);
	return NULL;
}

void extract_set_times(struct extract *extract, uint64_t from, uint64_t to)
{
	extract->from = from;
	extract->to = to;
}

uint64_t extract_from(const struct extract *extract)
{
	return extract->from;
}

uint64_t extract_to(const struct extract *extract)
{
	return extract->to;
}

/* --- the search for the last instructions ----------------------------------------------------- */

void extract_begin_search(struct extract *extract)
{
	extract->is_search = true;
	extract->asked_from = extract->from;
	extract->asked_to = extract->to;
}

void extract_begin_window(struct extract *extract, uint64_t from, uint64_t to)
{
	extract->from = from;
	extract->to = to;
}

void extract_end_window(struct extract *extract)
{
	for (size_t i = 0; i < extract->threads.n; i++) {
		struct extract_thread *thread = &extract->threads.items[i];

		if (thread->has_last || thread->n < extract->last)
			continue;
		thread->has_last = true;
		thread->n -= extract->last;
	}
}

void extract_end_search(struct extract *extract)
{
	extract->is_search = false;
	extract->from = extract->to = extract->asked_to;
	for (size_t i = 0; i < extract->threads.n; i++) {
		struct extract_thread *thread = &extract->threads.items[i];

		if (!thread->has_last && thread->n == 0)
			continue;
		if (thread->since < extract->from)
			extract->from = thread->since;
		if (!thread->has_last)
			thread->n = 0;
	}
}

/* --- what is asked for ------------------------------------------------------------------------ */

static bool has_id(const struct ids *ids, uint32_t id)
{
	return ids->is_all || map_get(&ids->set, id) || (ids->scope && map_get(ids->scope, id));
}

static bool has_name(const struct names *names, const char *name)
{
	bool found = names->n == 0;

	for (size_t i = 0; i < names->n && !found; i++)
		found = strcmp(names->items[i], name) == 0;
	return found;
}

bool extract_asks_for_cpu(const struct extract *extract, uint32_t cpu)
{
	return has_id(&extract->cpus, cpu);
}

/* Return: whether this thread is asked for; UNDECIDED if it is not known which one it is. */
static int asks_for_thread(const struct extract *e, uint32_t pid, uint32_t tid, const char *comm)
{
	if (e->pids.is_all && e->tids.is_all && e->comms.n == 0)
		return ASKED_FOR;
	if (pid == PTD_ID_UNKNOWN || tid == PTD_ID_UNKNOWN)
		return UNDECIDED;
	return has_id(&e->pids, pid) && has_id(&e->tids, tid) && has_name(&e->comms, comm)
		   ? ASKED_FOR
		   : LEFT_OUT;
}

/* Each CPU has a thread of its own that is idle, or that is not known. */
static uint64_t key_of(uint32_t cpu, uint32_t pid, uint32_t tid)
{
	const bool is_of_cpu = tid == 0 || tid == PTD_ID_UNKNOWN;

	return (uint64_t)(is_of_cpu ? cpu : pid) << 32 | tid;
}

static const struct extract_thread *known_thread(const struct extract *e, uint32_t cpu,
						 const struct stay *stay)
{
	const uint64_t *index = map_get(&e->by_thread, key_of(cpu, stay->pid, stay->tid));

	return index ? &e->threads.items[*index] : NULL;
}

bool extract_asks_for_stay(const struct extract *extract, uint32_t cpu, const struct stay *stay)
{
	const int asked = asks_for_thread(extract, stay->pid, stay->tid, stay->comm);
	const struct extract_thread *thread;

	if (asked != ASKED_FOR || !extract->last)
		return asked != LEFT_OUT && !extract->is_search;
	thread = known_thread(extract, cpu, stay);
	if (!thread)
		return true;
	return extract->is_search ? !thread->has_last : stay->end > thread->since;
}

bool extract_asks_for_unknown(const struct extract *extract, uint32_t cpu, uint64_t *ret_since)
{
	static const struct stay unknown = { .pid = PTD_ID_UNKNOWN, .tid = PTD_ID_UNKNOWN };
	const struct extract_thread *thread = known_thread(extract, cpu, &unknown);

	*ret_since = extract->from;
	if (!extract->last || asks_for_thread(extract, unknown.pid, unknown.tid, "") != ASKED_FOR)
		return false;
	if (extract->is_search)
		return !thread || !thread->has_last;
	if (thread && thread->since > extract->from)
		*ret_since = thread->since;
	return thread;
}

static bool asks_for_time(const struct extract *e, uint64_t t)
{
	return t >= e->from && t < e->to;
}

static bool asks_for_code(const struct extract *e)
{
	return e->symbols.n > 0 || e->objects.n > 0;
}

/* An object is called by its path, or by the last part of that. */
static bool has_object(const struct names *names, const char *path)
{
	return has_name(names, path) || has_name(names, basename(path));
}

/* Return: 0 and whether the code of @object is asked for; or -ENOMEM. */
static int look_at_object(struct extract *e, const struct ptd_object *object, bool *ret_asked)
{
	uint8_t *note;

	*ret_asked = e->objects.n == 0;
	if (*ret_asked)
		return 0;
	note = vec_at(&e->by_object, object->id, UNDECIDED);
	if (!note)
		return -ENOMEM;
	if (*note == UNDECIDED)
		*note = has_object(&e->objects, object->name) ? ASKED_FOR : LEFT_OUT;
	*ret_asked = *note == ASKED_FOR;
	return 0;
}

/* The same of the symbol @id of @batch. */
static int look_at_symbol(struct extract *e, const struct ptd_batch *batch, uint32_t id,
			  bool *ret_asked)
{
	uint8_t *note;

	*ret_asked = e->symbols.n == 0;
	if (*ret_asked || id == PTD_NO_SYMBOL || id >= batch->n_symbols)
		return 0;
	note = vec_at(&e->by_symbol, id, UNDECIDED);
	if (!note)
		return -ENOMEM;
	if (*note == UNDECIDED)
		*note = has_name(&e->symbols, batch->symbols[id]->name) ? ASKED_FOR : LEFT_OUT;
	*ret_asked = *note == ASKED_FOR;
	return 0;
}

/* --- the batch -------------------------------------------------------------------------------- */

/* What is known while a batch is gone through. */
struct passage {
	const struct ptd_logged_call *calls; /* of the batch, if it is of a log */
	size_t n_calls;
	struct extract *extract;
	const struct ptd_batch *batch;
	struct extract_counts *counts;
	struct extract_thread *thread;
};

static void note_time(struct extract_counts *counts, uint64_t t)
{
	if (t && (!counts->t_first || t < counts->t_first))
		counts->t_first = t;
	if (t > counts->t_last)
		counts->t_last = t;
}

static void leave_out_mark(struct extract_counts *counts, const struct ptd_mark *mark)
{
	if (mark->kind != PTD_MARK_GAP)
		return;
	counts->n_gaps[mark->reason]++;
	counts->gap_bytes[mark->reason] += mark->n_bytes;
}

static void leave_out_run(struct extract_counts *counts, const struct ptd_run *run, uint16_t n)
{
	counts->n_insns += n;
	counts->n_insns_early += run->early ? n : 0;
}

static int keep_mark(const struct passage *p, const struct ptd_mark *mark)
{
	struct ptd_mark kept = *mark;

	kept.run = p->extract->runs.n + p->extract->calls.n;
	note_time(p->counts, mark->t);
	return vec_push(&p->extract->marks, kept);
}

static int take_mark(const struct passage *p, const struct ptd_mark *mark)
{
	const struct extract *e = p->extract;
	/* The thread noted it on a CPU that is not asked for. */
	const bool is_elsewhere =
	    !e->cpus.is_all && ptd_mark_has_name(mark) && mark->t < p->batch->slice->t0;

	if (asks_for_time(e, mark->t) && !is_elsewhere && (!e->last || p->thread->has_kept) &&
	    (!asks_for_code(e) || mark->kind == PTD_MARK_GAP || p->thread->keeps))
		return keep_mark(p, mark);
	leave_out_mark(p->counts, mark);
	return 0;
}

/* Something of the thread at @t is kept next: mark where something before it was left out. */
static int begin_kept(const struct passage *p, uint64_t t)
{
	const struct ptd_mark broken = { .kind = PTD_MARK_OUT_OF_SCOPE,
					 .reason = PTD_GAP_NO_CODE,
					 .t = t };
	int r;

	if (p->thread->is_broken) {
		r = keep_mark(p, &broken);
		if (r < 0)
			return r;
		p->thread->is_broken = false;
	}
	p->thread->has_kept = p->extract->has_kept = true;
	note_time(p->counts, t);
	return 0;
}

/* Keep the instructions from @first on before @end of @run. */
static int keep_run(const struct passage *p, const struct ptd_run *run, size_t first, size_t end)
{
	const int r = begin_kept(p, run->t);
	struct ptd_run kept = *run;

	if (r < 0)
		return r;
	kept.first = (uint16_t)first;
	kept.n = (uint16_t)(end - first);
	return vec_push(&p->extract->runs, kept);
}

/*
 * Return: how many of @n instructions at @t of the thread come before its last ones. In a search,
 *         they all do.
 */
static size_t n_before_last(const struct passage *p, uint64_t t, size_t n)
{
	struct extract_thread *thread = p->thread;

	if (p->extract->is_search) {
		if (!thread->has_last) {
			thread->n += n;
			thread->since = p->extract->from;
		}
		return n;
	}
	if (t < thread->since)
		return n;
	if (n > thread->n)
		n = thread->n;
	thread->n -= n;
	return n;
}

/* Take the instructions from @first on before @end of @run, which are in one symbol. */
static int take_piece(const struct passage *p, const struct ptd_run *run, size_t first, size_t end,
		      bool is_asked)
{
	p->thread->keeps = is_asked;
	if (is_asked && p->extract->last) {
		const size_t n = n_before_last(p, run->t, end - first);

		leave_out_run(p->counts, run, (uint16_t)n);
		first += n;
	}
	if (is_asked)
		return first < end ? keep_run(p, run, first, end) : 0;
	p->thread->is_broken = p->thread->has_kept;
	leave_out_run(p->counts, run, (uint16_t)(end - first));
	return 0;
}

/* Cut @run into pieces by the symbols. */
static int take_pieces(const struct passage *p, const struct ptd_run *run)
{
	const struct ptd_insn *insns = run->block->insns;
	const size_t end = (size_t)run->first + run->n;
	size_t first = run->first;
	bool is_asked, is_next = false;
	int r;

	r = look_at_symbol(p->extract, p->batch, insns[first].symbol, &is_asked);
	for (size_t i = first + 1; i < end && r == 0; i++) {
		if (insns[i].symbol == insns[i - 1].symbol)
			continue;
		r = look_at_symbol(p->extract, p->batch, insns[i].symbol, &is_next);
		if (r < 0 || is_next == is_asked)
			continue;
		r = take_piece(p, run, first, i, is_asked);
		first = i;
		is_asked = is_next;
	}
	return r < 0 ? r : take_piece(p, run, first, end, is_asked);
}

static int take_run(const struct passage *p, const struct ptd_run *run)
{
	struct extract *e = p->extract;
	bool is_asked;
	int r;

	if (!asks_for_time(e, run->t)) {
		p->thread->keeps = false;
		leave_out_run(p->counts, run, run->n);
		return 0;
	}
	r = look_at_object(e, run->block->object, &is_asked);
	if (r < 0)
		return r;
	if (is_asked && e->symbols.n > 0)
		return take_pieces(p, run);
	return take_piece(p, run, run->first, (size_t)run->first + run->n, is_asked);
}

/* What a function called is not in it: so no call is broken off where others are left out. */
static int take_call(const struct passage *p, const struct ptd_logged_call *call)
{
	bool is_asked;
	int r;

	if (!asks_for_time(p->extract, call->t))
		return 0;
	r = look_at_object(p->extract, call->object, &is_asked);
	if (r == 0 && is_asked)
		r = look_at_symbol(p->extract, p->batch, call->symbol, &is_asked);
	if (r < 0 || !is_asked)
		return r;
	r = begin_kept(p, call->t);
	return r < 0 ? r : vec_push(&p->extract->calls, *call);
}

/* Find or add the thread of @slice. */
static int find_thread(struct extract *e, const struct ptd_slice *slice,
		       struct extract_thread **ret_thread)
{
	const uint64_t key = key_of(slice->cpu, slice->pid, slice->tid);

	*ret_thread = map_item(&e->by_thread, key, &e->threads, {});
	return *ret_thread ? 0 : -ENOMEM;
}

/* Return: whether a thread that is asked for may have run on the CPU of the batch at @t. */
static bool may_have_run(const struct passage *p, uint64_t t)
{
	struct stay stay;

	if (!p->extract->timeline)
		return true;
	timeline_at(p->extract->timeline, p->batch->slice->cpu, t, &stay);
	return extract_asks_for_stay(p->extract, p->batch->slice->cpu, &stay);
}

/* Leave out all of the batch, but for gaps if it is not known which thread ran. */
static int leave_out_batch(const struct passage *p, bool is_known)
{
	int r = 0;

	for (size_t i = 0; i < p->batch->n_runs; i++)
		leave_out_run(p->counts, &p->batch->runs[i], p->batch->runs[i].n);
	for (size_t i = 0; i < p->batch->n_marks && r == 0; i++) {
		const struct ptd_mark *mark = &p->batch->marks[i];

		if (is_known || mark->kind != PTD_MARK_GAP || !asks_for_time(p->extract, mark->t) ||
		    !may_have_run(p, mark->t))
			leave_out_mark(p->counts, mark);
		else
			r = keep_mark(p, mark);
	}
	return r;
}

static int take_batch(struct passage *p)
{
	const struct ptd_batch *batch = p->batch;
	size_t m = 0;
	int r;

	r = find_thread(p->extract, batch->slice, &p->thread);
	if (r < 0)
		return r;
	/* Since its last slice, the thread may have run on a CPU that is not asked for. */
	if (!p->extract->cpus.is_all && p->thread->t0 != batch->slice->t0)
		p->thread->is_broken = p->thread->has_kept;
	p->thread->t0 = batch->slice->t0;
	for (size_t i = 0; i <= batch->n_runs + p->n_calls && r == 0; i++) {
		while (r == 0 && m < batch->n_marks && batch->marks[m].run == i)
			r = take_mark(p, &batch->marks[m++]);
		if (r == 0 && i < batch->n_runs)
			r = take_run(p, &batch->runs[i]);
		if (r == 0 && i < p->n_calls)
			r = take_call(p, &p->calls[i]);
	}
	return r;
}

/* Is all kept of a batch of which anything is asked for? Then nothing of it is broken off. */
static bool keeps_batches(const struct extract *e)
{
	return !asks_for_code(e) && !e->last && !e->is_search && e->cpus.is_all && e->from == 0 &&
	       e->to == UINT64_MAX;
}

static void keep_batch(const struct passage *p)
{
	const struct ptd_batch *batch = p->batch;

	for (size_t i = 0; i < batch->n_runs; i++)
		note_time(p->counts, batch->runs[i].t);
	for (size_t i = 0; i < p->n_calls; i++)
		note_time(p->counts, p->calls[i].t);
	for (size_t i = 0; i < batch->n_marks; i++)
		note_time(p->counts, batch->marks[i].t);
	p->extract->has_kept = p->extract->has_kept || batch->n_runs + p->n_calls > 0;
}

int extract_batch(struct extract *extract, const struct ptd_logged *batch,
		  struct extract_counts *counts, struct ptd_logged *ret_batch)
{
	struct passage p = { .extract = extract,
			     .batch = &batch->batch,
			     .calls = batch->calls,
			     .n_calls = batch->n_calls,
			     .counts = counts };
	const struct ptd_slice *slice = p.batch->slice;
	const int asked = asks_for_thread(extract, slice->pid, slice->tid, slice->comm);
	int r;

	*ret_batch = *batch;
	if (asked == ASKED_FOR && keeps_batches(extract)) {
		keep_batch(&p);
		return 0;
	}
	extract->runs.n = extract->calls.n = extract->marks.n = 0;
	if (asked == ASKED_FOR && extract_asks_for_cpu(extract, slice->cpu))
		r = take_batch(&p);
	else
		r = leave_out_batch(&p, asked != UNDECIDED);
	if (r < 0)
		return r;
	ret_batch->batch.runs = extract->runs.items;
	ret_batch->batch.n_runs = extract->runs.n;
	ret_batch->batch.marks = extract->marks.items;
	ret_batch->batch.n_marks = extract->marks.n;
	ret_batch->calls = extract->calls.items;
	ret_batch->n_calls = extract->calls.n;
	return 0;
}
