/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Summary
 *
 * How many instructions each process, thread, object and symbol executed. Each table has the
 * largest parts first and the others in one line, so that it adds up. Then follow what was lost and
 * why, and what became of each CPU's bytes. The text is for people, so its form may change; that of
 * the JSON document may not.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/tally.h"

#define ANONYMOUS "[anon]"

struct summary {
	struct output *output;       /* borrowed */
	const struct ptd_info *info; /* borrowed */
	struct tally tally;
	uint64_t n_rows;
};

/* One table of parts, with the columns of a row that it shows. */
struct table {
	const char *title, *key; /* in the text, and in JSON */
	enum tally_part part;
	bool pid, tid, object;
	const char *name_title;
};

static const struct table tables[] = {
	{ "Processes", "processes", TALLY_PROCESSES, true, false, false, "command" },
	{ "Threads", "threads", TALLY_THREADS, true, true, false, "command" },
	{ "Objects", "objects", TALLY_OBJECTS, false, false, false, "object" },
	{ "Symbols", "symbols", TALLY_SYMBOLS, false, false, true, "symbol (object)" },
};

/* Errors are not checked: the output keeps the first one, and sink_finish() returns it. */
#define put(summary, ...) output_printf((summary)->output, __VA_ARGS__)

/* Print the part in percent, in 8 columns. */
static void put_percent(struct summary *summary, uint64_t part)
{
	char text[COLUMN_MAX];

	*column_percent(text, part, summary->tally.n_insns) = '\0';
	put(summary, " %s", text);
}

static bool is_anonymous(const struct tally_row *row)
{
	return row->object && strcmp(row->object, ANONYMOUS) == 0;
}

static void put_id(struct summary *summary, uint32_t id)
{
	if (id == PTD_ID_UNKNOWN)
		put(summary, " %10s", "?");
	else
		put(summary, " %10" PRIu32, id);
}

static void put_row(struct summary *summary, const struct table *table, const struct tally_row *row)
{
	put(summary, "%20" PRIu64, row->n_insns);
	put_percent(summary, row->n_insns);
	if (table->pid)
		put_id(summary, row->pid);
	if (table->tid)
		put_id(summary, row->tid);
	put(summary, "  ");
	output_name(summary->output, row->name ? row->name : "[unknown]");
	if (table->object)
		output_object(summary->output, row->object);
	if (is_anonymous(row) && (!table->object || !row->name))
		put(summary, " %" PRIx64 "-%" PRIx64, row->first, row->last + 1);
	put(summary, "\n");
}

/* Print what would name code that has no name because no file has it. */
static void put_hint(struct summary *summary, const struct tally_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (!is_anonymous(&rows->items[i]) || rows->items[i].name)
			continue;
		put(summary,
		    "Code in " ANONYMOUS " is of a JIT compiler as a rule, and has names if that "
		    "writes them down before the snapshot; how to ask each runtime for that is in "
		    "ptd-runtimes(7)\n");
		return;
	}
}

static int put_table(struct summary *summary, const struct table *table)
{
	struct tally_rows rows = {};
	uint64_t n_others = 0;
	int r;

	r = tally_list(&summary->tally, table->part, &rows);
	if (r < 0)
		return r;

	put(summary, "\n%s: %zu\n%20s %7s", table->title, rows.n, "instructions", "%");
	if (table->pid)
		put(summary, " %10s", "pid");
	if (table->tid)
		put(summary, " %10s", "tid");
	put(summary, "  %s\n", table->name_title);

	for (size_t i = 0; i < rows.n; i++) {
		if (i < summary->n_rows)
			put_row(summary, table, &rows.items[i]);
		else
			n_others += rows.items[i].n_insns;
	}
	if (rows.n > summary->n_rows) {
		put(summary, "%20" PRIu64, n_others);
		put_percent(summary, n_others);
		put(summary, "  (%zu other%s)\n", rows.n - (size_t)summary->n_rows,
		    plural(rows.n - summary->n_rows));
	}
	if (table->object)
		put_hint(summary, &rows);
	vec_deinit(&rows);
	return 0;
}

static void put_gaps(struct summary *summary, const struct ptd_stats *stats)
{
	uint64_t n = 0, n_bytes = 0;

	for (size_t i = 0; i < stats->n_gap_reasons; i++) {
		n += stats->n_gaps[i];
		n_bytes += stats->gap_bytes[i];
	}
	put(summary, "\nGaps: %" PRIu64 "\n", n);
	if (n == 0)
		return;
	put(summary, "%20s %20s  reason\n", "gaps", "bytes lost");
	for (size_t i = 0; i < stats->n_gap_reasons; i++)
		if (stats->n_gaps[i] > 0)
			put(summary, "%20" PRIu64 " %20" PRIu64 "  %s\n", stats->n_gaps[i],
			    stats->gap_bytes[i], ptd_gap_reason_name((enum ptd_gap_reason)i));
	put(summary, "%20" PRIu64 " %20" PRIu64 "  in all\n", n, n_bytes);
}

/* Print the time from @first to @last, in the unit of the stream's clock. */
static void put_time(struct summary *summary, uint64_t first, uint64_t last)
{
	const uint64_t t = last > first ? last - first : 0;

	if (summary->info->clock == PTD_CLOCK_NS)
		put(summary, " %10" PRIu64 ".%09" PRIu64 " s", t / 1000000000, t % 1000000000);
	else if (summary->info->clock == PTD_CLOCK_TSC)
		put(summary, " %16" PRIu64 " ticks", t);
	else
		put(summary, " %22s", "-");
}

/* Return: the sums of all CPUs, with the earliest and the latest time, which are 0 if none has any.
 */
static struct ptd_cpu_stats sum_up(const struct ptd_stats *stats)
{
	struct ptd_cpu_stats all = {};

	for (size_t i = 0; i < stats->n_cpus; i++) {
		const struct ptd_cpu_stats *c = &stats->cpus[i];

		all.bytes_in += c->bytes_in;
		all.bytes_decoded += c->bytes_decoded;
		all.bytes_lost += c->bytes_lost;
		all.bytes_out_of_scope += c->bytes_out_of_scope;
		all.n_insns_out_of_scope += c->n_insns_out_of_scope;
		all.n_insns += c->n_insns;
		all.n_gaps += c->n_gaps;
		if (c->t_first > 0 && (all.t_first == 0 || c->t_first < all.t_first))
			all.t_first = c->t_first;
		if (c->t_first > 0 && c->t_last > all.t_last)
			all.t_last = c->t_last;
	}
	return all;
}

static void put_cpu(struct summary *summary, const struct ptd_cpu_stats *c, bool has_scope)
{
	put(summary, " %15" PRIu64 " %15" PRIu64 " %15" PRIu64, c->bytes_in, c->bytes_decoded,
	    c->bytes_lost);
	if (has_scope)
		put(summary, " %15" PRIu64, c->bytes_out_of_scope);
	put(summary, " %20" PRIu64 " %10" PRIu64, c->n_insns, c->n_gaps);
}

static void put_cpus(struct summary *summary, const struct ptd_stats *stats)
{
	const struct ptd_cpu_stats all = sum_up(stats);
	const bool has_scope = all.bytes_out_of_scope > 0;

	put(summary, "\nCPUs: %zu\n%5s %15s %15s %15s", stats->n_cpus, "cpu", "bytes in",
	    "bytes decoded", "bytes lost");
	if (has_scope)
		put(summary, " %15s", "out of scope");
	put(summary, " %20s %10s %22s\n", "instructions", "gaps", "time covered");
	for (size_t i = 0; i < stats->n_cpus; i++) {
		const struct ptd_cpu_stats *c = &stats->cpus[i];

		put(summary, "%5" PRIu32, c->cpu);
		put_cpu(summary, c, has_scope);
		put_time(summary, c->t_first, c->t_last);
		put(summary, "\n");
	}
	put(summary, "%5s", "all");
	put_cpu(summary, &all, has_scope);
	put(summary, "\n");
}

static void put_date(struct summary *summary, uint64_t t)
{
	const uint64_t ns = t + (uint64_t)summary->info->realtime_offset_ns;
	const time_t s = (time_t)(ns / 1000000000);
	char text[32];
	struct tm tm;

	if (gmtime_r(&s, &tm) && strftime(text, sizeof(text), "%F %T", &tm) > 0)
		put(summary, "%s.%06" PRIu64 " UTC", text, ns % 1000000000 / 1000);
}

/* Print how much was overwritten at the beginning of the rings, for which there is no gap. */
static void put_overwritten(struct summary *summary, uint64_t last)
{
	const uint64_t since = summary->info->complete_since;

	if (since == 0)
		return;
	put(summary, "Overwritten: the beginning, %" PRIu64 " byte%s of PT; it is complete since ",
	    summary->info->bytes_overwritten, plural(summary->info->bytes_overwritten));
	put_date(summary, since);
	if (last > since)
		put(summary, ", the last %" PRIu64 ".%09" PRIu64 " s", (last - since) / 1000000000,
		    (last - since) % 1000000000);
	put(summary, "\n");
}

static void put_span(struct summary *summary, const struct ptd_stats *stats)
{
	const uint64_t n_claimed = tally_n_claimed(&summary->tally);
	const struct ptd_cpu_stats all = sum_up(stats);

	put(summary, "Instructions: %" PRIu64 "\n", summary->tally.n_insns);
	/* A drmemtrace directory has instructions without PT. */
	if (all.bytes_in == 0 && summary->tally.n_insns == 0)
		put(summary, "PT: none, nothing was recorded\n");
	if (stats->n_insns_early > 0)
		put(summary,
		    "Early: %" PRIu64 " of JIT code that its maker noted only afterwards\n",
		    stats->n_insns_early);
	if (n_claimed > 0)
		put(summary,
		    "Claimed: %" PRIu64 " of JIT code whose bytes only its jitdump states\n",
		    n_claimed);
	if (all.bytes_out_of_scope > 0)
		put(summary, "Out of scope: %" PRIu64 " bytes of PT of what was not asked for\n",
		    all.bytes_out_of_scope);
	if (all.n_insns_out_of_scope > 0)
		put(summary,
		    "Left out: %" PRIu64 " instructions that were decoded but were not asked for\n",
		    all.n_insns_out_of_scope);
	put_overwritten(summary, all.t_last);
	if (stats->n_events > 0 || stats->n_events_left_out > 0)
		put(summary,
		    "Events: %" PRIu64 " that programs noted; %" PRIu64
		    " more, of times or threads that were not recorded, are left out\n",
		    stats->n_events, stats->n_events_left_out);
	for (size_t i = 0; i < summary->info->n_complaints; i++)
		put(summary, "Missing: %s\n", summary->info->complaints[i]);
	if (stats->n_records_unknown > 0 || stats->n_records_bad > 0)
		put(summary,
		    "Records skipped: %" PRIu64 " of unknown types, %" PRIu64
		    " that make no sense\n",
		    stats->n_records_unknown, stats->n_records_bad);
	if (all.t_last == 0 || all.t_first > all.t_last)
		return;
	put(summary, "Time:");
	put_time(summary, all.t_first, all.t_last);
	put(summary, "\n");

	if (summary->info->clock == PTD_CLOCK_NS && summary->info->realtime_offset_ns != 0) {
		put(summary, "From: ");
		put_date(summary, all.t_first);
		put(summary, "\n");
	}
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_json_row(struct json *json, const struct table *table, const struct tally_row *row)
{
	json_object(json, NULL);
	json_number(json, "instructions", row->n_insns);
	if (table->pid)
		json_id(json, "pid", row->pid);
	if (table->tid)
		json_id(json, "tid", row->tid);
	if (table->object)
		json_text(json, "symbol", row->name);
	json_text(json, table->pid ? "comm" : "object", table->pid ? row->name : row->object);
	if (row->object) {
		json_address(json, "first", row->first);
		json_address(json, "last", row->last);
	}
	json_close(json);
}

static int put_json_table(struct summary *summary, struct json *json, const struct table *table)
{
	struct tally_rows rows = {};
	int r;

	r = tally_list(&summary->tally, table->part, &rows);
	if (r < 0)
		return r;
	json_array(json, table->key);
	for (size_t i = 0; i < rows.n; i++)
		put_json_row(json, table, &rows.items[i]);
	json_close(json);
	vec_deinit(&rows);
	return 0;
}

static void put_json_gaps(struct json *json, const struct ptd_stats *stats)
{
	json_array(json, "gaps");
	for (size_t i = 0; i < stats->n_gap_reasons; i++) {
		if (stats->n_gaps[i] == 0)
			continue;
		json_object(json, NULL);
		json_text(json, "reason", ptd_gap_reason_name((enum ptd_gap_reason)i));
		json_number(json, "gaps", stats->n_gaps[i]);
		json_number(json, "bytes", stats->gap_bytes[i]);
		json_close(json);
	}
	json_close(json);
}

static void put_json_cpus(struct json *json, const struct ptd_stats *stats)
{
	json_array(json, "cpus");
	for (size_t i = 0; i < stats->n_cpus; i++) {
		const struct ptd_cpu_stats *c = &stats->cpus[i];

		json_object(json, NULL);
		json_number(json, "cpu", c->cpu);
		json_number(json, "bytes_in", c->bytes_in);
		json_number(json, "bytes_decoded", c->bytes_decoded);
		json_number(json, "bytes_lost", c->bytes_lost);
		json_number(json, "bytes_out_of_scope", c->bytes_out_of_scope);
		json_number(json, "instructions", c->n_insns);
		json_number(json, "gaps", c->n_gaps);
		json_number(json, "t_first", c->t_first);
		json_number(json, "t_last", c->t_last);
		json_close(json);
	}
	json_close(json);
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	struct summary *summary = state;
	const struct ptd_info *info = summary->info;
	int r = 0;

	json_signed(json, "realtime_offset_ns", info->realtime_offset_ns);
	json_number(json, "instructions", summary->tally.n_insns);
	json_number(json, "instructions_early", stats->n_insns_early);
	json_number(json, "instructions_claimed", tally_n_claimed(&summary->tally));
	json_number(json, "bytes_overwritten", info->bytes_overwritten);
	json_number(json, "complete_since", info->complete_since);
	json_number(json, "records_unknown", stats->n_records_unknown);
	json_number(json, "records_bad", stats->n_records_bad);
	json_number(json, "events", stats->n_events);
	json_number(json, "events_left_out", stats->n_events_left_out);
	json_array(json, "missing");
	for (size_t i = 0; i < info->n_complaints; i++)
		json_text(json, NULL, info->complaints[i]);
	json_close(json);
	for (size_t i = 0; i < ARRAY_LEN(tables) && r == 0; i++)
		r = put_json_table(summary, json, &tables[i]);
	put_json_gaps(json, stats);
	put_json_cpus(json, stats);
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static int summary_open(void *state, const struct sink_config *config, struct output *output)
{
	struct summary *summary = state;

	summary->info = config->info;
	summary->output = output;
	summary->n_rows = config->n_rows;
	return 0;
}

static void summary_close(void *state)
{
	tally_deinit(&((struct summary *)state)->tally);
}

static int summary_remember(const void *state, void **ret_memory)
{
	*ret_memory = calloc(1, sizeof(struct tally_index));
	return *ret_memory ? 0 : -ENOMEM;
}

/* The bytes of a batch are the sums of its runs. */
static int summary_expand(const void *state, void *memory, const struct ptd_batch *batch,
			  struct output *output)
{
	const size_t n_max = OUTPUT_SIZE / sizeof(struct tally_sum);
	size_t n;

	for (size_t i = 0; i < batch->n_runs; i += n) {
		int r;

		n = batch->n_runs - i < n_max ? batch->n_runs - i : n_max;
		r = output_reserve(output, n * sizeof(struct tally_sum));
		if (r < 0)
			return r;
		output->n_used +=
		    sizeof(struct tally_sum) * tally_sum(batch->runs + i, n, memory,
							 (void *)(output->buffer + output->n_used));
	}
	return 0;
}

static int summary_write(void *state, const struct ptd_batch *batch, const void *bytes,
			 size_t n_bytes)
{
	return tally_add(&((struct summary *)state)->tally, batch, bytes,
			 n_bytes / sizeof(struct tally_sum));
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct summary *summary = state;

	put_span(summary, stats);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		const int r = put_table(summary, &tables[i]);

		if (r < 0)
			return r;
	}
	put_gaps(summary, stats);
	put_cpus(summary, stats);
	return 0;
}

static const struct sink_option options[] = {
	{ .name = "rows", .value = "N", .help = "how many rows of each table are shown (20)" },
	{ .name = "json", .help = "as JSON, all rows" },
	{},
};

const struct sink_ops sink_summary = {
	.name = "summary",
	.help = "where the instructions went, what was lost and why",
	.options = options,
	.state_size = sizeof(struct summary),
	.open = summary_open,
	.remember = summary_remember,
	.forget = free,
	.expand = summary_expand,
	.write = summary_write,
	.text = put_text,
	.json = put_json,
	.close = summary_close,
	.writes_last = true,
};
