/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Probes
 *
 * The static probes (USDT) of the objects that ran: how often each was executed, and each of these
 * executions. Nobody needs to have enabled a probe. One that is guarded, by a semaphore that code
 * reads, was executed only if somebody had.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

#define HITS_MAX  ((size_t)1 << 23) /* that are kept, the last ones, and shown one by one */
#define HITS_WIDE 12

struct row {
	const struct ptd_object *object; /* borrowed, as are the next two */
	const struct ptd_probe *probe;
	const struct ptd_symbol *function; /* which has it; NULL: not known */
	uint64_t n_hits;
	uint64_t t_first, t_last;
};

struct hit {
	uint64_t t;
	uint32_t thread; /* index */
	uint32_t row;    /* index */
	uint64_t number; /* as they came */
};

struct thread {
	uint32_t pid, tid;
	const char *comm; /* borrowed */
};

struct probes {
	enum ptd_clock clock;
	uint64_t n_rows;
	struct ptd_decoder *decoder; /* borrowed; NULL: no probes are known */

	VEC(const struct ptd_object *) objects; /* by id; NULL: none has been seen */
	VEC(struct row) rows;
	VEC(const struct row *) shown; /* the most executed first */
	struct map row_of;             /* probe → index of its row */
	VEC(struct hit) hits;
	VEC(struct thread) threads;
	uint64_t slice; /* of the last hit */
	uint64_t n_hits;
};

/* --- counting --------------------------------------------------------------------------------- */

/* Add rows of all probes of the object, which is new. */
static int add_object(struct probes *p, const struct ptd_object *object)
{
	const struct ptd_object **seen = vec_at(&p->objects, object->id, NULL);
	const struct ptd_probe *probes;
	size_t n;
	int r;

	if (!seen)
		return -ENOMEM;
	*seen = object;
	r = ptd_decoder_probes(p->decoder, object, &probes, &n);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = map_put(&p->row_of, (uintptr_t)&probes[i], p->rows.n);
		if (r == 0)
			r = vec_push(&p->rows, { .object = object, .probe = &probes[i] });
	}
	return r;
}

static int see_objects(struct probes *p, const struct ptd_batch *batch)
{
	const struct ptd_object *last = NULL;
	int r = 0;

	if (!p->decoder)
		return 0;
	for (size_t i = 0; i < batch->n_runs && r == 0; i++) {
		const struct ptd_object *object = batch->runs[i].block->object;

		if (object == last)
			continue;
		last = object;
		if (object->id >= p->objects.n || !p->objects.items[object->id])
			r = add_object(p, object);
	}
	return r;
}

/* Find the row of the probe at @ip of the run; of several there, number @k. NULL: there is none. */
static int find_row(struct probes *p, const struct ptd_run *run, uint64_t ip, size_t k,
		    struct row **ret_row)
{
	const uint64_t address = run->block->address + (ip - run->base);
	struct {
		const struct ptd_probe *items;
		size_t n;
	} probes;
	const int r = ptd_decoder_probes(p->decoder, run->block->object, &probes.items, &probes.n);
	size_t i;

	*ret_row = NULL;
	if (r < 0)
		return r;
	i = vec_bisect(&probes, probe, probe->address < address) + k;
	if (i < probes.n && probes.items[i].address == address)
		*ret_row = &p->rows.items[*map_get(&p->row_of, (uintptr_t)&probes.items[i])];
	return 0;
}

static const struct ptd_symbol *function_at(const struct ptd_batch *batch,
					    const struct ptd_run *run, uint64_t ip)
{
	for (uint16_t i = 0; i < run->n; i++)
		if (ptd_run_ip(run, i) == ip)
			return batch->symbols[run->block->insns[run->first + i].symbol];
	return NULL;
}

static int keep_hit(struct probes *p, const struct ptd_slice *slice, const struct row *row,
		    uint64_t t)
{
	struct hit hit;
	int r = 0;

	if (p->threads.n == 0 || slice->id != p->slice)
		r = vec_push(&p->threads, { slice->pid, slice->tid, slice->comm });
	p->slice = slice->id;
	hit = (struct hit){ .t = t,
			    .thread = (uint32_t)p->threads.n - 1,
			    .row = (uint32_t)(row - p->rows.items),
			    .number = p->n_hits++ };
	if (r == 0 && p->hits.n < HITS_MAX)
		return vec_push(&p->hits, hit);
	if (r == 0)
		p->hits.items[hit.number % HITS_MAX] = hit;
	return r;
}

/* Count the execution of the probe; of several at its place, number @k. */
static int count_hit(struct probes *p, const struct ptd_batch *batch, const struct ptd_mark *mark,
		     size_t k)
{
	const struct ptd_run *run = &batch->runs[mark->run - 1];
	struct row *row;
	int r;

	r = find_row(p, run, mark->ip, k, &row);
	if (r < 0 || !row)
		return r;
	if (row->n_hits++ == 0)
		row->function = function_at(batch, run, mark->ip);
	/* Threads come one after the other. */
	if (row->n_hits == 1 || mark->t < row->t_first)
		row->t_first = mark->t;
	if (mark->t > row->t_last)
		row->t_last = mark->t;
	return keep_hit(p, batch->slice, row, mark->t);
}

static int probes_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct probes *p = state;
	int r = see_objects(p, batch);
	size_t k = 0;

	for (size_t i = 0; i < batch->n_marks && r == 0 && p->rows.n > 0; i++) {
		const struct ptd_mark *mark = &batch->marks[i];

		if (mark->kind != PTD_MARK_PROBE || mark->run == 0)
			continue;
		k = i > 0 && mark[-1].kind == PTD_MARK_PROBE && mark[-1].run == mark->run &&
			    mark[-1].ip == mark->ip
			? k + 1
			: 0;
		r = count_hit(p, batch, mark, k);
	}
	return r;
}

/* --- text ------------------------------------------------------------------------------------- */

static void put_name(const struct row *row, struct output *output)
{
	output_name(output, row->probe->provider);
	output_printf(output, ":");
	output_name(output, row->probe->name);
}

static void put_row(const struct probes *p, const struct row *row, struct output *output)
{
	const struct ptd_symbol *f = row->function;
	char text[2 * COLUMN_MAX], *to = column_number(text, row->n_hits, HITS_WIDE, ' ');

	*to++ = ' ';
	if (row->n_hits > 0) {
		*column_time(to, p->clock, row->t_first) = '\0';
	} else {
		memset(to, ' ', COLUMN_TIME);
		to[COLUMN_TIME] = '\0';
	}
	output_printf(output, "%s  %-8s", text, row->probe->is_guarded ? "guarded" : "");
	put_name(row, output);
	if (f && f->name[0]) {
		output_printf(output, " in ");
		output_name(output, f->name);
		output_printf(output, "+0x%" PRIx64, row->probe->address - f->address);
	} else {
		output_printf(output, " at 0x%" PRIx64, row->probe->address);
	}
	output_object(output, row->object->name);
	output_printf(output, "\n");
}

static void put_hit(const struct probes *p, const struct hit *hit, struct output *output)
{
	const struct thread *thread = &p->threads.items[hit->thread];
	char text[COLUMN_MAX];

	*column_time(text, p->clock, hit->t) = '\0';
	output_printf(output, "%s  ", text);
	put_name(&p->rows.items[hit->row], output);
	output_printf(output, "  ");
	output_thread(output, thread->pid, thread->tid, thread->comm);
	output_printf(output, "\n");
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct probes *p = state;
	const size_t first = p->hits.n > p->n_rows ? p->hits.n - (size_t)p->n_rows : 0;

	output_printf(output, "Probes: %zu, executed %" PRIu64 " time%s\n", p->rows.n, p->n_hits,
		      plural(p->n_hits));
	if (p->rows.n == 0)
		return 0;
	output_printf(output, "\n%*s %*s  %-8sprobe, function (object)\n", HITS_WIDE, "executed",
		      COLUMN_TIME, "first", "");
	for (size_t i = 0; i < p->rows.n; i++)
		put_row(p, p->shown.items[i], output);
	if (p->hits.n == 0)
		return 0;
	output_printf(output, "\n%*s  probe, thread%s\n", COLUMN_TIME, "time",
		      first > 0 ? ": the last ones" : "");
	for (size_t i = first; i < p->hits.n; i++)
		put_hit(p, &p->hits.items[i], output);
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_json_row(struct json *json, const struct row *row)
{
	const struct ptd_probe *probe = row->probe;

	json_object(json, NULL);
	json_text(json, "provider", probe->provider);
	json_text(json, "name", probe->name);
	json_text(json, "object", row->object->name);
	json_address(json, "address", probe->address);
	json_text(json, "function", row->function ? row->function->name : NULL);
	json_text(json, "arguments", probe->arguments);
	json_bool(json, "guarded", probe->is_guarded);
	json_number(json, "executed", row->n_hits);
	if (row->n_hits > 0) {
		json_number(json, "first", row->t_first);
		json_number(json, "last", row->t_last);
	}
	json_close(json);
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	const struct probes *p = state;

	json_number(json, "executed", p->n_hits);
	json_array(json, "probes");
	for (size_t i = 0; i < p->rows.n; i++)
		put_json_row(json, &p->rows.items[i]);
	json_close(json);
	json_array(json, "executions");
	for (size_t i = 0; i < p->hits.n; i++) {
		const struct hit *hit = &p->hits.items[i];
		const struct thread *thread = &p->threads.items[hit->thread];

		json_object(json, NULL);
		json_number(json, "t", hit->t);
		json_number(json, "probe", hit->row);
		json_id(json, "pid", thread->pid);
		json_id(json, "tid", thread->tid);
		json_text(json, "comm", thread->comm);
		json_close(json);
	}
	json_close(json);
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static int probes_open(void *state, const struct sink_config *config, struct output *output)
{
	struct probes *p = state;

	p->clock = config->info->clock;
	p->n_rows = config->n_rows;
	p->decoder = config->decoder;
	return 0;
}

static int by_time(const void *pa, const void *pb)
{
	const struct hit *a = pa, *b = pb;

	return COMPARE(a->t, b->t) ?: COMPARE(a->number, b->number);
}

static int by_hits(const void *pa, const void *pb)
{
	const struct row *a = *(const struct row *const *)pa, *b = *(const struct row *const *)pb;

	return COMPARE(b->n_hits, a->n_hits) ?: COMPARE(a, b);
}

static int probes_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct probes *p = state;
	int r = 0;

	for (size_t i = 0; i < p->rows.n && r == 0; i++)
		r = vec_push(&p->shown, &p->rows.items[i]);
	vec_sort(&p->shown, by_hits);
	vec_sort(&p->hits, by_time);
	return r;
}

static bool probes_is_empty(const void *state)
{
	return ((const struct probes *)state)->rows.n == 0;
}

static const char *probes_omission(void *state)
{
	const struct probes *p = state;

	if (p->rows.n == 0)
		return "no object that ran has a probe";
	return p->n_hits > p->hits.n ? "more executions of probes than are shown one by one" : NULL;
}

static void probes_close(void *state)
{
	struct probes *p = state;

	vec_deinit(&p->objects);
	vec_deinit(&p->rows);
	vec_deinit(&p->shown);
	map_deinit(&p->row_of);
	vec_deinit(&p->hits);
	vec_deinit(&p->threads);
}

static const struct sink_option options[] = {
	{ .name = "rows",
	  .value = "N",
	  .help = "how many executions are shown, the last ones (20)" },
	{ .name = "json", .help = "as JSON, all executions" },
	{},
};

const struct sink_ops sink_probes = {
	.name = "probes",
	.help = "the static probes (USDT) of the programs, and when they were executed",
	.options = options,
	.state_size = sizeof(struct probes),
	.open = probes_open,
	.batch = probes_batch,
	.finish = probes_finish,
	.text = put_text,
	.json = put_json,
	.omission = probes_omission,
	.is_empty = probes_is_empty,
	.close = probes_close,
	.writes_last = true,
};
