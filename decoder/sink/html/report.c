/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/html/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "util/map.h"

/* Bytes of an escape. */
#define ESCAPE_SIZE 6

void report_deinit(struct report *report)
{
	vec_deinit(&report->functions);
	free(report->numbers);
	flametree_deinit(&report->flame);
}

/* --- which functions -------------------------------------------------------------------------- */

/* Return: the bytes that the name takes at most. */
static uint64_t size_of_name(const char *name)
{
	return ESCAPE_SIZE * strnlen(name, REPORT_NAME_MAX);
}

/* List the functions that cost most. Return: 0 or -ENOMEM. */
static int list_functions(struct report *report)
{
	const struct profile *profile = report->profile;
	uint64_t size = 0;

	report->numbers = calloc(profile->functions.n + 1, sizeof(*report->numbers));
	if (!report->numbers || profile_list(profile, &report->functions) < 0)
		return -ENOMEM;
	profile_sort(&report->functions, report->info->clock != PTD_CLOCK_NONE);
	for (size_t i = 0; i < report->functions.n && i < REPORT_FUNCTIONS; i++) {
		const struct ptd_function *function = report->functions.items[i]->function;

		size += size_of_name(function->name);
		if (size > REPORT_NAMES_SIZE)
			break;
		report->numbers[function->id] = (uint32_t)++report->n_listed;
	}
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Write a name, of a longer one the first bytes. */
static void put_name(struct json *json, const char *key, const char *name)
{
	char text[REPORT_NAME_MAX + sizeof("…")];
	size_t n = strnlen(name, REPORT_NAME_MAX + 1);

	if (n <= REPORT_NAME_MAX) {
		json_text(json, key, name);
		return;
	}
	/* What is cut is a character. */
	for (n = REPORT_NAME_MAX; n > 0 && ((uint8_t)name[n] & 0xc0) == 0x80;)
		n--;
	memcpy(text, name, n);
	memcpy(text + n, "…", sizeof("…"));
	json_text(json, key, text);
}

/* A number that a script must read without rounding. */
static void put_exact(struct json *json, const char *key, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	json_text(json, key, text);
}

static void put_cost(struct json *json, const struct cost *cost)
{
	json_number(json, NULL, cost->self);
	json_number(json, NULL, cost->total);
	json_number(json, NULL, cost->whole.n);
	json_number(json, NULL, cost->whole.n > 0 ? cost->whole.min : 0);
	json_number(json, NULL, histogram_quantile(&cost->whole, 500));
	json_number(json, NULL, histogram_quantile(&cost->whole, 990));
	json_number(json, NULL, cost->whole.n > 0 ? cost->whole.max : 0);
}

/* Write a row of each function, and the objects that they are in. Return: 0 or -ENOMEM. */
static int put_functions(struct report *report, struct json *json)
{
	VEC(const struct ptd_object *) objects = {};
	struct map by_id = {};
	int r = 0;

	json_array(json, "functions");
	for (size_t i = 0; r == 0 && i < report->n_listed; i++) {
		const struct profile_function *f = report->functions.items[i];
		const struct ptd_object *object = f->function->object;
		uint64_t number;

		r = map_number(&by_id, object->id, objects.n, &number);
		if (r > 0)
			r = vec_push(&objects, object);
		json_array(json, NULL);
		put_name(json, NULL, f->function->name);
		json_number(json, NULL, number);
		json_address(json, NULL, f->function->address);
		json_number(json, NULL, f->n_calls);
		json_number(json, NULL, f->n_partial);
		put_cost(json, &f->t);
		put_cost(json, &f->n_insns);
		json_close(json);
	}
	json_close(json);
	json_array(json, "objects");
	for (size_t i = 0; i < objects.n; i++)
		put_name(json, NULL, objects.items[i]->name);
	json_close(json);
	vec_deinit(&objects);
	map_deinit(&by_id);
	return r;
}

/* For each function its slowest executions. */
static void put_outliers(const struct report *report, struct json *json)
{
	json_array(json, "slowest");
	for (size_t i = 0; i < report->n_listed; i++) {
		const struct outliers_function *f = outliers_of(
		    &report->trackspans->outliers, report->functions.items[i]->function->id);

		json_array(json, NULL);
		for (size_t k = 0; k < f->n; k++) {
			json_array(json, NULL);
			json_number(json, NULL, f->slowest[k].t - report->base);
			json_number(json, NULL, f->slowest[k].duration);
			json_number(json, NULL, f->slowest[k].n_insns);
			json_number(json, NULL, f->slowest[k].track);
			json_close(json);
		}
		json_close(json);
	}
	json_close(json);
}

static void put_thread(struct json *json, uint32_t pid, uint32_t tid, const char *name)
{
	json_array(json, NULL);
	json_id(json, NULL, pid < VIEWTRACK_TID_UNKNOWN ? pid : PTD_ID_UNKNOWN);
	json_id(json, NULL, tid < VIEWTRACK_TID_UNKNOWN ? tid : PTD_ID_UNKNOWN);
	put_name(json, NULL, name ?: "?");
}

/* Write the tracks of the timeline, and the roots of the flame graph. */
static void put_threads(const struct report *report, struct json *json)
{
	const struct viewtracks *tracks = &report->trackspans->tracks;

	json_array(json, "tracks");
	for (size_t i = 0; i < tracks->all.n && i < SPANS_TRACKS; i++) {
		const struct viewtrack *track = &tracks->all.items[i];

		const bool is_noted = track->noted_by != VIEWTRACK_NONE;

		put_thread(json, track->pid, is_noted ? track->noted_by : track->tid, track->comm);
		if (track->stack != VIEWTRACK_NONE)
			json_number(json, NULL, track->stack);
		else if (is_noted)
			json_text(json, NULL, "events");
		json_close(json);
	}
	json_close(json);
	json_array(json, "threads");
	for (size_t i = 0; i < report->tree->names.n; i++) {
		const struct stacktree_name *name = &report->tree->names.items[i];

		put_thread(json, name->pid, name->tid, name->text);
		json_close(json);
	}
	json_close(json);
}

/* Write what became of the trace. */
static void put_trace(const struct report *report, struct json *json)
{
	const struct ptd_stats *stats = report->stats;

	json_array(json, "gaps");
	for (size_t i = 0; i < stats->n_gap_reasons; i++) {
		json_array(json, NULL);
		json_text(json, NULL, ptd_gap_reason_name((enum ptd_gap_reason)i));
		json_number(json, NULL, stats->n_gaps[i]);
		json_number(json, NULL, stats->gap_bytes[i]);
		json_close(json);
	}
	json_close(json);
	json_array(json, "marks");
	for (int i = 0; i < _PTD_MARK_KINDS; i++)
		json_text(json, NULL, ptd_mark_kind_name((enum ptd_mark_kind)i));
	json_close(json);
	json_array(json, "noted");
	for (size_t i = 0; i < report->trackspans->names.n; i++)
		put_name(json, NULL, report->trackspans->names.items[i]->name);
	json_close(json);
	json_array(json, "cpus");
	for (size_t i = 0; i < stats->n_cpus; i++) {
		const struct ptd_cpu_stats *cpu = &stats->cpus[i];

		json_array(json, NULL);
		json_number(json, NULL, cpu->cpu);
		json_number(json, NULL, cpu->bytes_in);
		json_number(json, NULL, cpu->bytes_decoded);
		json_number(json, NULL, cpu->bytes_lost);
		json_number(json, NULL, cpu->bytes_out_of_scope);
		json_number(json, NULL, cpu->n_insns);
		json_close(json);
	}
	json_close(json);
	json_array(json, "complaints");
	for (size_t i = 0; i < report->info->n_complaints; i++)
		put_name(json, NULL, report->info->complaints[i]);
	json_close(json);
}

/* Write what the page has no room for. */
static void put_left_out(const struct report *report, struct json *json)
{
	const struct spans *spans = &report->trackspans->spans;
	const size_t n_tracks = report->trackspans->tracks.all.n;

	json_object(json, "left_out");
	json_number(json, "functions", report->functions.n - report->n_listed);
	json_number(json, "nodes", report->tree->nodes.n - report->flame.n_kept);
	json_number(json, "stacks", report->tree->n_left_out);
	json_number(json, "resolution", spans->resolution);
	json_number(json, "whole_since", spans->resolution > 0 ? spans->t_whole - report->base : 0);
	json_number(json, "deep", spans->n_too_deep);
	json_number(json, "tracks", n_tracks > SPANS_TRACKS ? n_tracks - SPANS_TRACKS : 0);
	json_number(json, "outer", report->trackspans->tracks.n_outer_left_out);
	json_number(json, "signals", report->trackspans->tracks.n_signals_left_out);
	json_close(json);
}

static int put_document(struct report *report, struct output *output)
{
	const struct profile *profile = report->profile;
	struct json json = json_begin(output);
	int r;

	json.in_html = true;
	json_object(&json, NULL);
	json_text(&json, "version", PTD_VERSION);
	json_clock(&json, report->info->clock);
	put_exact(&json, "base", report->base);
	if (report->info->realtime_offset_ns != 0)
		json_signed(&json, "realtime_offset", report->info->realtime_offset_ns / 1000000);
	json_number(&json, "calls", profile->n_calls);
	json_number(&json, "partial", profile->n_partial);
	json_number(&json, "time", profile->t_self);
	json_number(&json, "instructions", profile->n_insns);
	json_number(&json, "n_functions", report->functions.n);
	json_number(&json, "bytes_overwritten", report->info->bytes_overwritten);
	if (report->info->complete_since > report->base)
		json_number(&json, "complete_since", report->info->complete_since - report->base);
	if (report->info->snapshot_taken > report->base)
		json_number(&json, "snapshot", report->info->snapshot_taken - report->base);
	put_left_out(report, &json);
	put_threads(report, &json);
	put_trace(report, &json);
	r = put_functions(report, &json);
	put_outliers(report, &json);
	json_close(&json);
	return r;
}

/* --- packed numbers --------------------------------------------------------------------------- */

static bool is_same_row(const struct span *a, const struct span *b)
{
	return a->track == b->track && a->kind == b->kind && a->row == b->row;
}

/*
 * Write the spans row by row: the row's track, kind, number and spans; and of each span the time
 * since the one before it on the row began, its duration, its value times 2 (+ 1 if it stands for
 * several), and its instructions if it is a function. If it stands for several, how many times 2
 * (+ 1 if their values differ), and the sum of their durations.
 */
static void put_spans(const struct report *report, struct packed *packed)
{
	const struct span *const spans = report->trackspans->spans.items.items;
	const size_t n_spans = report->trackspans->spans.items.n;

	for (size_t i = 0, n; i < n_spans; i += n) {
		uint64_t t = report->base;

		for (n = 1; i + n < n_spans && is_same_row(&spans[i], &spans[i + n]);)
			n++;
		packed_number(packed, spans[i].track);
		packed_number(packed, spans[i].kind);
		packed_number(packed, (uint64_t)spans[i].row);
		packed_number(packed, n);
		for (const struct span *span = &spans[i]; span < &spans[i + n]; span++) {
			const bool is_function = span->kind == SPAN_FUNCTION;
			const uint64_t value =
			    is_function ? report->numbers[span->value] : span->value;

			packed_number(packed, span->t - t);
			packed_number(packed, span->duration);
			packed_number(packed, value << 1 | (span->n > 1));
			if (is_function)
				packed_number(packed, span->n_insns);
			if (span->n > 1) {
				packed_number(packed, (uint64_t)span->n << 1 | span->is_mixed);
				packed_number(packed, span->busy);
			}
			t = span->t;
		}
	}
	packed_end(packed);
}

static uint64_t find_base(const struct report *report)
{
	const struct spans *spans = &report->trackspans->spans;
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < spans->items.n; i++)
		if (spans->items.items[i].t < base)
			base = spans->items.items[i].t;
	return spans->items.n > 0 ? base : 0;
}

int report_put(struct report *report, struct output *output)
{
	struct packed spans = packed_begin(output), nodes = packed_begin(output);
	int r;

	report->base = find_base(report);
	r = list_functions(report);
	if (r == 0)
		r = flametree_init(&report->flame, report->tree);
	if (r < 0)
		return r;
	output_printf(output, "<script type=\"application/json\" id=\"report\">\n");
	r = put_document(report, output);
	output_printf(output, "</script>\n<script type=\"text/plain\" id=\"spans\">");
	put_spans(report, &spans);
	output_printf(output, "</script>\n<script type=\"text/plain\" id=\"nodes\">");
	flametree_put(&report->flame, report->numbers, &nodes);
	packed_end(&nodes);
	output_printf(output, "</script>\n");
	return r < 0 ? r : output->error;
}

/* --- flame tree ------------------------------------------------------------------------------- */

static void sum_up(struct flametree *flame)
{
	const struct stacktree_node *nodes = flame->tree->nodes.items;

	/* Each node stands behind its parent. */
	for (size_t i = flame->tree->nodes.n; i-- > 0;) {
		struct flametree_node *node = &flame->nodes[i];

		node->t_total += nodes[i].t_self;
		node->n_insns_total += nodes[i].n_insns_self;
		if (nodes[i].parent == STACKTREE_NONE)
			continue;
		flame->nodes[nodes[i].parent].t_total += node->t_total;
		flame->nodes[nodes[i].parent].n_insns_total += node->n_insns_total;
	}
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return COMPARE(b, a);
}

/* Return: the least cost with which a node is among the first FLAMETREE_NODES. */
static uint64_t find_least(uint64_t *costs, size_t n)
{
	if (n <= FLAMETREE_NODES)
		return 0;
	qsort(costs, n, sizeof(*costs), by_size);
	return costs[FLAMETREE_NODES] + 1;
}

static int choose(struct flametree *flame)
{
	const size_t n = flame->tree->nodes.n;
	uint64_t *costs = calloc(n + 1, sizeof(*costs)), t_least, n_insns_least;

	if (!costs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		costs[i] = flame->nodes[i].t_total;
	t_least = find_least(costs, n);
	for (size_t i = 0; i < n; i++)
		costs[i] = flame->nodes[i].n_insns_total;
	n_insns_least = find_least(costs, n);
	free(costs);
	for (size_t i = 0; i < n; i++)
		if (flame->nodes[i].t_total >= t_least ||
		    flame->nodes[i].n_insns_total >= n_insns_least ||
		    flame->tree->nodes.items[i].parent == STACKTREE_NONE)
			flame->nodes[i].number = (uint32_t)++flame->n_kept;
	return 0;
}

/* What is left out is part of the innermost node above it that is kept. */
static void account_rest(struct flametree *flame)
{
	for (size_t i = 0; i < flame->tree->nodes.n; i++) {
		const struct flametree_node *node = &flame->nodes[i];
		const uint32_t parent = flame->tree->nodes.items[i].parent;

		/* A node costs at least what each one below it costs. */
		if (node->number > 0 || flame->nodes[parent].number == 0)
			continue;
		flame->nodes[parent].t_below += node->t_total;
		flame->nodes[parent].n_insns_below += node->n_insns_total;
	}
}

int flametree_init(struct flametree *flame, const struct stacktree *tree)
{
	*flame = (struct flametree){ .tree = tree };
	flame->nodes = calloc(tree->nodes.n + 1, sizeof(*flame->nodes));
	if (!flame->nodes)
		return -ENOMEM;
	sum_up(flame);
	if (choose(flame) < 0) {
		flametree_deinit(flame);
		return -ENOMEM;
	}
	account_rest(flame);
	return 0;
}

void flametree_deinit(struct flametree *flame)
{
	free(flame->nodes);
	*flame = (struct flametree){};
}

void flametree_put(const struct flametree *flame, const uint32_t *numbers_of_functions,
		   struct packed *packed)
{
	for (size_t i = 0; i < flame->tree->nodes.n; i++) {
		const struct stacktree_node *node = &flame->tree->nodes.items[i];
		const struct flametree_node *kept = &flame->nodes[i];
		const bool is_root = node->parent == STACKTREE_NONE;

		if (kept->number == 0)
			continue;
		packed_number(packed,
			      is_root ? 0 : kept->number - flame->nodes[node->parent].number);
		packed_number(packed,
			      is_root ? node->function : numbers_of_functions[node->function]);
		packed_number(packed, node->n_calls);
		packed_number(packed, node->t_self);
		packed_number(packed, node->n_insns_self);
		packed_number(packed, kept->t_below);
		packed_number(packed, kept->n_insns_below);
	}
}

/* --- packing ---------------------------------------------------------------------------------- */

static void put_group(struct packed *packed)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint32_t group =
	    (uint32_t)packed->bytes[0] << 16 | (uint32_t)packed->bytes[1] << 8 | packed->bytes[2];
	char text[4];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i <= packed->n ? digits[group >> (18 - 6 * i) & 63] : '=';
	(void)output_write(packed->output, text, sizeof(text));
	packed->n = 0;
}

void packed_byte(struct packed *packed, uint8_t byte)
{
	packed->bytes[packed->n++] = byte;
	if (packed->n == sizeof(packed->bytes))
		put_group(packed);
}

void packed_number(struct packed *packed, uint64_t number)
{
	for (; number > 127; number >>= 7)
		packed_byte(packed, (uint8_t)(number | 128));
	packed_byte(packed, (uint8_t)number);
}

void packed_end(struct packed *packed)
{
	if (packed->n == 0)
		return;
	for (size_t i = packed->n; i < sizeof(packed->bytes); i++)
		packed->bytes[i] = 0;
	put_group(packed);
}
