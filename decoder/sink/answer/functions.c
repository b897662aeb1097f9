/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions
 *
 * What each function cost: in the function itself, with what it called, and how that is distributed
 * over its calls; once in time and once in instructions. A call that took much time and no more
 * instructions than others was slow because of the machine.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/sink/answer/profile.h"
#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

#define CELL 12 /* columns of a cell of a table, with a blank before it */

struct functions {
	enum ptd_clock clock;
	uint64_t n_rows;
	struct profile profile;

	/* At the end: those that were called. */
	struct profile_list rows;
};

/* --- rows ------------------------------------------------------------------------------------- */

static const struct cost *cost_of(const struct profile_function *f, bool is_time)
{
	return is_time ? &f->t : &f->n_insns;
}

static int list_functions(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct functions *functions = state;

	return profile_list(&functions->profile, &functions->rows);
}

/* --- text ------------------------------------------------------------------------------------- */

static char *put_number(char *to, uint64_t v)
{
	return column_number(to, v, CELL, ' ');
}

/* Write a time or a number of instructions. */
static char *put_value(const struct functions *functions, char *to, uint64_t v, bool is_time)
{
	if (!is_time)
		return put_number(to, v);
	memset(to, ' ', CELL - COLUMN_DURATION);
	return column_duration(to + CELL - COLUMN_DURATION, functions->clock, v);
}

static char *put_distribution(const struct functions *functions, char *to,
			      const struct histogram *whole, bool is_time)
{
	const uint64_t values[] = { whole->min, histogram_quantile(whole, 500),
				    histogram_quantile(whole, 990), whole->max };

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		if (whole->n > 0) {
			to = put_value(functions, to, values[i], is_time);
		} else {
			memset(to, ' ', CELL);
			to[CELL - 1] = '-';
			to += CELL;
		}
	}
	return to;
}

static void put_row(const struct functions *functions, const struct profile_function *f,
		    bool is_time, struct output *output)
{
	const struct profile *profile = &functions->profile;
	const struct cost *cost = cost_of(f, is_time);
	char line[10 * COLUMN_MAX], *p = line;

	p = put_value(functions, p, cost->self, is_time);
	*p++ = ' ';
	p = column_percent(p, cost->self, is_time ? profile->t_self : profile->n_insns);
	p = put_value(functions, p, cost->total, is_time);
	p = put_number(p, f->n_calls);
	p = put_number(p, f->n_partial);
	p = put_distribution(functions, p, &cost->whole, is_time);
	*p++ = ' ';
	*p++ = ' ';
	(void)output_write(output, line, (size_t)(p - line));
	output_name(output, f->function->name);
	output_object(output, f->function->object->name);
	output_printf(output, "\n");
}

static void put_table(struct functions *functions, bool is_time, struct output *output)
{
	const size_t n_rows = functions->rows.n;
	uint64_t n_others = 0;

	profile_sort(&functions->rows, is_time);
	output_printf(output, "\nBy %s:\n%12s %7s%12s%12s%12s%12s%12s%12s%12s  %s\n",
		      is_time ? "time" : "instructions", "self", "%", "total", "calls", "partial",
		      "min", "median", "p99", "max", "function (object)");
	for (size_t i = 0; i < n_rows; i++) {
		if (i < functions->n_rows)
			put_row(functions, functions->rows.items[i], is_time, output);
		else
			n_others += cost_of(functions->rows.items[i], is_time)->self;
	}
	if (n_rows > functions->n_rows) {
		const struct profile *profile = &functions->profile;
		char line[3 * COLUMN_MAX], *p = put_value(functions, line, n_others, is_time);

		*p++ = ' ';
		p = column_percent(p, n_others, is_time ? profile->t_self : profile->n_insns);
		(void)output_write(output, line, (size_t)(p - line));
		output_printf(output, "  (%zu other%s)\n", n_rows - (size_t)functions->n_rows,
			      plural(n_rows - functions->n_rows));
	}
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct functions *functions = state;
	const struct profile *profile = &functions->profile;

	output_printf(output, "Functions: %zu\nCalls: %" PRIu64 "\n", functions->rows.n,
		      profile->n_calls);
	if (profile->n_partial > 0)
		output_printf(output,
			      "Partial: %" PRIu64 " call%s whose beginning or end is not in "
			      "the trace, or is ambiguous\n",
			      profile->n_partial, plural(profile->n_partial));
	if (functions->clock != PTD_CLOCK_NONE)
		put_table(functions, true, output);
	put_table(functions, false, output);
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_cost(struct json *json, const char *key, const struct cost *cost)
{
	static const struct {
		const char *key;
		unsigned int per_mille;
	} quantiles[] = { { "min", 0 }, { "median", 500 }, { "p99", 990 }, { "max", 1000 } };

	json_object(json, key);
	json_number(json, "self", cost->self);
	json_number(json, "total", cost->total);
	for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
		if (cost->whole.n > 0)
			json_number(json, quantiles[i].key,
				    histogram_quantile(&cost->whole, quantiles[i].per_mille));
		else
			json_null(json, quantiles[i].key);
	}
	json_close(json);
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	struct functions *functions = state;

	profile_sort(&functions->rows, functions->clock != PTD_CLOCK_NONE);
	json_number(json, "calls", functions->profile.n_calls);
	json_number(json, "partial", functions->profile.n_partial);
	json_array(json, "functions");
	for (size_t i = 0; i < functions->rows.n; i++) {
		const struct profile_function *f = functions->rows.items[i];

		json_object(json, NULL);
		json_function(json, f->function);
		json_number(json, "calls", f->n_calls);
		json_number(json, "partial", f->n_partial);
		if (functions->clock != PTD_CLOCK_NONE)
			put_cost(json, "time", &f->t);
		put_cost(json, "instructions", &f->n_insns);
		json_close(json);
	}
	json_close(json);
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static int functions_open(void *state, const struct sink_config *config, struct output *output)
{
	struct functions *functions = state;

	functions->clock = config->info->clock;
	functions->n_rows = config->n_rows;
	return 0;
}

static int functions_calls(void *state, const struct ptd_call_batch *calls)
{
	return profile_add(&((struct functions *)state)->profile, calls);
}

static void functions_close(void *state)
{
	struct functions *functions = state;

	vec_deinit(&functions->rows);
	profile_deinit(&functions->profile);
}

static const struct sink_option options[] = {
	{ .name = "rows", .value = "N", .help = "how many rows of each table are shown (20)" },
	{ .name = "json", .help = "as JSON, all rows" },
	{},
};

const struct sink_ops sink_functions = {
	.name = "functions",
	.help = "what each function cost, in time and in instructions",
	.options = options,
	.state_size = sizeof(struct functions),
	.open = functions_open,
	.calls = functions_calls,
	.finish = list_functions,
	.text = put_text,
	.json = put_json,
	.close = functions_close,
	.writes_last = true,
};
