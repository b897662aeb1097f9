/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Latency
 *
 * How long the executions of one function took: their distribution, the slowest ones, and how the
 * slowest differs from a usual one, function by function. A difference in time without one in
 * instructions was made by the machine or by waiting; one in instructions by the program.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/sink/answer/executions.h"
#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

#define CELL 14 /* columns of a cell of a table, with a blank before it */

/* What the slowest execution has more of a function than the median one. */
struct difference {
	const struct ptd_function *function; /* NULL: all that have no row of their own */
	struct execution_part slowest, median;
};

struct latency {
	enum ptd_clock clock;
	uint64_t n_rows;
	struct executions executions;
	const struct execution *median;     /* at the end; borrowed; NULL: there is none */
	VEC(struct difference) differences; /* likewise; the largest first */
};

/* --- differences ------------------------------------------------------------------------------ */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int by_name(const struct difference *a, const struct difference *b)
{
	if (!a->function || !b->function)
		return !a->function - !b->function;
	return COMPARE(a->function->id, b->function->id);
}

static int by_insns(const void *pa, const void *pb)
{
	const struct difference *a = pa, *b = pb;
	const uint64_t x = distance(a->slowest.n_insns_self, a->median.n_insns_self);
	const uint64_t y = distance(b->slowest.n_insns_self, b->median.n_insns_self);

	return COMPARE(y, x) ?: by_name(a, b);
}

static int by_time(const void *pa, const void *pb)
{
	const struct difference *a = pa, *b = pb;
	const uint64_t x = distance(a->slowest.t_self, a->median.t_self);
	const uint64_t y = distance(b->slowest.t_self, b->median.t_self);

	return COMPARE(y, x) ?: by_insns(pa, pb);
}

static struct difference *find_difference(const struct latency *latency,
					  const struct ptd_function *function)
{
	for (size_t i = 0; i < latency->differences.n; i++)
		if (latency->differences.items[i].function == function)
			return &latency->differences.items[i];
	return NULL;
}

/* Both executions have a bounded number of parts. */
static int make_differences(struct latency *latency)
{
	const struct execution *slowest = &latency->executions.worst[0], *median = latency->median;

	for (size_t i = 0; i < slowest->n_parts; i++)
		if (vec_push(&latency->differences, { .function = slowest->parts[i].function,
						      .slowest = slowest->parts[i] }) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < median->n_parts; i++) {
		const struct execution_part *part = &median->parts[i];
		struct difference *d = find_difference(latency, part->function);

		if (d)
			d->median = *part;
		else if (vec_push(&latency->differences,
				  { .function = part->function, .median = *part }) < 0)
			return -ENOMEM;
	}
	vec_sort(&latency->differences, latency->clock != PTD_CLOCK_NONE ? by_time : by_insns);
	return 0;
}

/* --- text ------------------------------------------------------------------------------------- */

/* Write a time or a number of instructions; @sign is '-', '+', or ' ' for none. */
static char *put_value(const struct latency *latency, char *to, uint64_t v, bool is_time, char sign)
{
	char text[COLUMN_MAX], *end, *start = text;
	size_t size;

	end = is_time ? column_duration(text, latency->clock, v) : column_number(text, v, 0, ' ');
	while (*start == ' ')
		start++;
	size = (size_t)(end - start) + (sign != ' ');
	while (size++ < CELL)
		*to++ = ' ';
	if (sign != ' ')
		*to++ = sign;
	memcpy(to, start, (size_t)(end - start));
	return to + (end - start);
}

static char *put_difference(const struct latency *latency, char *to, uint64_t a, uint64_t b,
			    bool is_time)
{
	return put_value(latency, to, distance(a, b), is_time, a < b ? '-' : a > b ? '+' : ' ');
}

static void put_distribution(const struct latency *latency, struct output *output, const char *name,
			     const struct histogram *h, bool is_time)
{
	static const unsigned int per_mille[] = { 0, 500, 900, 990, 1000 };
	char line[8 * COLUMN_MAX], *p = line;

	for (size_t i = 0; i < ARRAY_LEN(per_mille); i++)
		p = put_value(latency, p, histogram_quantile(h, per_mille[i]), is_time, ' ');
	output_printf(output, "%-12s%.*s\n", name, (int)(p - line), line);
}

static void put_worst(const struct latency *latency, struct output *output)
{
	const struct executions *executions = &latency->executions;

	output_printf(output, "\nSlowest:\n%10s %17s%14s%14s  thread\n", "number", "began", "time",
		      "instructions");
	for (size_t i = 0; i < executions->n_worst; i++) {
		const struct execution *e = &executions->worst[i];
		char line[5 * COLUMN_MAX], *p = column_number(line, e->number, 10, ' ');

		*p++ = ' ';
		p = column_time(p, latency->clock, e->t);
		p = put_value(latency, p, e->duration, true, ' ');
		p = put_value(latency, p, e->n_insns, false, ' ');
		output_printf(output, "%.*s  ", (int)(p - line), line);
		output_thread(output, e->pid, e->tid, e->comm);
		output_printf(output, "\n");
	}
}

static void put_row(const struct latency *latency, struct output *output,
		    const struct difference *d)
{
	const struct execution_part *a = &d->slowest, *b = &d->median;
	char line[8 * COLUMN_MAX], *p = line;

	p = put_difference(latency, p, a->t_self, b->t_self, true);
	p = put_difference(latency, p, a->t_total, b->t_total, true);
	p = put_difference(latency, p, a->n_insns_self, b->n_insns_self, false);
	p = put_difference(latency, p, a->n_insns_total, b->n_insns_total, false);
	p = column_number(p, a->n_calls, CELL - 4, ' ');
	p = column_number(p, b->n_calls, CELL - 4, ' ');
	output_printf(output, "%.*s  ", (int)(p - line), line);
	if (!d->function) {
		output_printf(output, "(others)\n");
		return;
	}
	output_name(output, d->function->name);
	output_object(output, d->function->object->name);
	output_printf(output, "\n");
}

static void put_rows(const struct latency *latency, struct output *output)
{
	const struct execution *slowest = &latency->executions.worst[0], *median = latency->median;
	const size_t n = latency->differences.n;

	output_printf(output,
		      "\nThe slowest, number %" PRIu64 ", had more (+) or less (-) than number "
		      "%" PRIu64 ", of the median:\n"
		      "%14s%14s%14s%14s%10s%10s  function (object)\n"
		      "%14s%14s%14s%14s%10s%10s\n",
		      slowest->number, median->number, "time", "time", "instructions",
		      "instructions", "calls", "calls", "self", "total", "self", "total", "slowest",
		      "median");
	for (size_t i = 0; i < n && i < latency->n_rows; i++)
		put_row(latency, output, &latency->differences.items[i]);
	if (n > latency->n_rows)
		output_printf(output, "%14s(%zu other%s)\n", "", n - (size_t)latency->n_rows,
			      plural(n - latency->n_rows));
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct latency *latency = state;
	const struct executions *executions = &latency->executions;

	output_printf(output, "Function: ");
	output_name(output, executions->function ? executions->function->name : executions->name);
	if (executions->function)
		output_object(output, executions->function->object->name);
	output_printf(output, "\nExecutions: %" PRIu64 "\n", executions->n);
	if (executions->n_partial > 0)
		output_printf(output,
			      "Partial: %" PRIu64 " whose beginning or end is not in the "
			      "trace, or is ambiguous; they are left out\n",
			      executions->n_partial);
	if (!latency->median)
		return 0;
	output_printf(output, "\n%12s%14s%14s%14s%14s%14s\n", "", "min", "median", "p90", "p99",
		      "max");
	if (latency->clock != PTD_CLOCK_NONE)
		put_distribution(latency, output, "time", &executions->t, true);
	put_distribution(latency, output, "instructions", &executions->n_insns, false);
	put_worst(latency, output);
	if (executions->worst[0].number != latency->median->number)
		put_rows(latency, output);
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_json_distribution(struct json *json, const char *key, const struct histogram *h)
{
	static const struct {
		const char *key;
		unsigned int per_mille;
	} rows[] = {
		{ "min", 0 }, { "median", 500 }, { "p90", 900 }, { "p99", 990 }, { "max", 1000 }
	};

	json_object(json, key);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		json_number(json, rows[i].key, histogram_quantile(h, rows[i].per_mille));
	json_close(json);
}

static void put_json_execution(struct json *json, const char *key, const struct execution *e)
{
	json_object(json, key);
	json_number(json, "number", e->number);
	json_id(json, "pid", e->pid);
	json_id(json, "tid", e->tid);
	json_text(json, "comm", e->comm);
	json_number(json, "t", e->t);
	json_number(json, "duration", e->duration);
	json_number(json, "instructions", e->n_insns);
	json_close(json);
}

static void put_json_part(struct json *json, const char *key, const struct execution_part *part)
{
	json_object(json, key);
	json_number(json, "calls", part->n_calls);
	json_number(json, "time_self", part->t_self);
	json_number(json, "time_total", part->t_total);
	json_number(json, "instructions_self", part->n_insns_self);
	json_number(json, "instructions_total", part->n_insns_total);
	json_close(json);
}

static void put_json_differences(const struct latency *latency, struct json *json)
{
	json_array(json, "functions");
	for (size_t i = 0; i < latency->differences.n; i++) {
		const struct difference *d = &latency->differences.items[i];

		json_object(json, NULL);
		if (d->function)
			json_function(json, d->function);
		else
			json_null(json, "function");
		put_json_part(json, "slowest", &d->slowest);
		put_json_part(json, "median", &d->median);
		json_close(json);
	}
	json_close(json);
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	const struct latency *latency = state;
	const struct executions *executions = &latency->executions;

	json_text(json, "wanted", executions->name);
	json_number(json, "executions", executions->n);
	json_number(json, "partial", executions->n_partial);
	if (latency->median) {
		put_json_distribution(json, "time", &executions->t);
		put_json_distribution(json, "instructions", &executions->n_insns);
		json_array(json, "slowest");
		for (size_t i = 0; i < executions->n_worst; i++)
			put_json_execution(json, NULL, &executions->worst[i]);
		json_close(json);
		put_json_execution(json, "median", latency->median);
		put_json_differences(latency, json);
	}
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static int latency_open(void *state, const struct sink_config *config, struct output *output)
{
	struct latency *latency = state;

	latency->clock = config->info->clock;
	latency->n_rows = config->n_rows;
	latency->executions.name = sink_option(config, "function");
	latency->executions.has_time = latency->clock != PTD_CLOCK_NONE;
	return 0;
}

static int latency_calls(void *state, const struct ptd_call_batch *calls)
{
	return executions_add(&((struct latency *)state)->executions, calls);
}

static int latency_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct latency *latency = state;

	latency->median = executions_median(&latency->executions);
	return latency->median ? make_differences(latency) : 0;
}

static void latency_close(void *state)
{
	struct latency *latency = state;

	vec_deinit(&latency->differences);
	executions_deinit(&latency->executions);
}

static bool latency_is_empty(const void *state)
{
	const struct latency *latency = state;

	return latency->executions.n == latency->executions.n_partial;
}

static const char *latency_omission(void *state)
{
	return latency_is_empty(state)
		   ? "no call of that function was seen from its beginning to its end; functions "
		     "lists the names of those that were called"
		   : NULL;
}

static const struct sink_option options[] = {
	{ .name = "function", .value = "NAME", .help = "whose executions", .is_required = true },
	{ .name = "rows", .value = "N", .help = "how many functions are shown (20)" },
	{ .name = "json", .help = "as JSON, all functions" },
	{},
};

const struct sink_ops sink_latency = {
	.name = "latency",
	.help = "how long one function took, when it took longest, and why",
	.options = options,
	.state_size = sizeof(struct latency),
	.open = latency_open,
	.calls = latency_calls,
	.finish = latency_finish,
	.text = put_text,
	.json = put_json,
	.omission = latency_omission,
	.is_empty = latency_is_empty,
	.close = latency_close,
	.writes_last = true,
};
