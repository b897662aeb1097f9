/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Summary
 *
 * How many instructions each process, thread, object and symbol executed. Each table has the
 * largest parts first and the others in one line, so that it adds up. Then follow what was lost and
 * why, and what became of each CPU's bytes. The text is for people, so its form may change.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/tally.h"

#define ROWS_SHOWN 20   /* of each table, unless the user says how many */
#define NAME_SHOWN 1024 /* bytes of the name of an object or a symbol; longer names are cut */

struct summary {
	struct ptd_output *output;   /* while the summary is written; borrowed */
	const struct ptd_info *info; /* borrowed */
	struct tally tally;
	uint64_t n_rows;
};

/* One table of parts, with the columns of a row that it shows. */
struct table {
	const char *title;
	int (*rows)(const struct tally *tally, struct tally_rows *ret_rows);
	bool pid, tid, object;
	const char *name_title;
};

static const struct table tables[] = {
	{ "Processes", tally_processes, true, false, false, "command" },
	{ "Threads", tally_threads, true, true, false, "command" },
	{ "Objects", tally_objects, false, false, false, "object" },
	{ "Symbols", tally_symbols, false, false, true, "symbol (object)" },
};

/* Errors are not checked: the output keeps the first one, and ptd_sink_finish() returns it. */
#define put(summary, ...) ptd_output_printf((summary)->output, __VA_ARGS__)

/*
 * Print the part in percent, in 7 columns. Floating point is not used, since the program's locale
 * changes its decimal point.
 */
static void put_percent(struct summary *summary, uint64_t part)
{
	const uint64_t whole = summary->tally.n_insns;
	const unsigned __int128 n =
	    whole ? ((unsigned __int128)part * 10000 + whole / 2) / whole : 0;

	put(summary, " %4u.%02u", (unsigned int)(n / 100), (unsigned int)(n % 100));
}

static const char *printable(const char *name, char ret_text[static NAME_SHOWN + 1])
{
	ret_text[output_printable(ret_text, name, NAME_SHOWN)] = '\0';
	return ret_text;
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
	char text[NAME_SHOWN + 1];

	put(summary, "%20" PRIu64, row->n_insns);
	put_percent(summary, row->n_insns);
	if (table->pid)
		put_id(summary, row->pid);
	if (table->tid)
		put_id(summary, row->tid);
	put(summary, "  %s", row->name ? printable(row->name, text) : "[unknown]");
	if (table->object)
		put(summary, " (%s)", printable(row->object, text));
	put(summary, "\n");
}

static int put_table(struct summary *summary, const struct table *table)
{
	struct tally_rows rows = {};
	uint64_t n_others = 0;
	int r;

	r = table->rows(&summary->tally, &rows);
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

static uint64_t bytes_out_of_scope(const struct ptd_stats *stats)
{
	uint64_t n_bytes = 0;

	for (size_t i = 0; i < stats->n_cpus; i++)
		n_bytes += stats->cpus[i].bytes_out_of_scope;
	return n_bytes;
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
	const bool has_scope = bytes_out_of_scope(stats) > 0;
	struct ptd_cpu_stats all = {};

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

		all.bytes_in += c->bytes_in;
		all.bytes_decoded += c->bytes_decoded;
		all.bytes_lost += c->bytes_lost;
		all.bytes_out_of_scope += c->bytes_out_of_scope;
		all.n_insns += c->n_insns;
		all.n_gaps += c->n_gaps;
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
	const uint64_t n_out_of_scope = bytes_out_of_scope(stats);
	uint64_t first = UINT64_MAX, last = 0, bytes_in = 0;

	for (size_t i = 0; i < stats->n_cpus; i++) {
		bytes_in += stats->cpus[i].bytes_in;
		if (stats->cpus[i].t_first == 0)
			continue;
		if (stats->cpus[i].t_first < first)
			first = stats->cpus[i].t_first;
		if (stats->cpus[i].t_last > last)
			last = stats->cpus[i].t_last;
	}
	put(summary, "Instructions: %" PRIu64 "\n", summary->tally.n_insns);
	if (bytes_in == 0)
		put(summary, "PT: none, nothing was recorded\n");
	if (stats->n_insns_early > 0)
		put(summary,
		    "Early: %" PRIu64 " of JIT code that its maker noted only afterwards\n",
		    stats->n_insns_early);
	if (n_out_of_scope > 0)
		put(summary,
		    "Out of scope: %" PRIu64
		    " bytes of PT, which processes executed that the snapshot is not of\n",
		    n_out_of_scope);
	put_overwritten(summary, last);
	for (size_t i = 0; i < summary->info->n_complaints; i++)
		put(summary, "Missing: %s\n", summary->info->complaints[i]);
	if (stats->n_records_unknown > 0 || stats->n_records_bad > 0)
		put(summary,
		    "Records skipped: %" PRIu64 " of unknown types, %" PRIu64
		    " that make no sense\n",
		    stats->n_records_unknown, stats->n_records_bad);
	if (last == 0 || first > last)
		return;
	put(summary, "Time:");
	put_time(summary, first, last);
	put(summary, "\n");

	if (summary->info->clock == PTD_CLOCK_NS && summary->info->realtime_offset_ns != 0) {
		put(summary, "From: ");
		put_date(summary, first);
		put(summary, "\n");
	}
}

/* --- its life --------------------------------------------------------------------------------- */

static void summary_free(void *state)
{
	struct summary *summary = state;

	tally_deinit(&summary->tally);
	free(summary);
}

static int parse_rows(const char *text, uint64_t *ret_n)
{
	char *end;

	if (!text)
		return 0;
	errno = 0;
	*ret_n = strtoull(text, &end, 10);
	return errno || text[0] < '0' || text[0] > '9' || *end ? -EINVAL : 0;
}

static int summary_open(const struct ptd_sink_config *config, struct ptd_output *output,
			void **ret_state)
{
	struct summary *summary;
	uint64_t n_rows = ROWS_SHOWN;
	int r;

	(void)output;
	r = parse_rows(ptd_sink_option(config, "rows"), &n_rows);
	if (r < 0)
		return r;
	summary = calloc(1, sizeof(*summary));
	if (!summary)
		return -ENOMEM;
	summary->info = config->info;
	summary->n_rows = n_rows;
	*ret_state = summary;
	return 0;
}

static int summary_remember(const void *state, void **ret_memory)
{
	(void)state;
	*ret_memory = calloc(1, sizeof(struct tally_index));
	return *ret_memory ? 0 : -ENOMEM;
}

static void summary_forget(void *memory)
{
	free(memory);
}

/* The bytes of a batch are the sums of its runs. */
static int summary_expand(const void *state, void *memory, const struct ptd_batch *batch,
			  struct ptd_output *output)
{
	const size_t n_max = OUTPUT_SIZE / sizeof(struct tally_sum);
	size_t n;

	(void)state;
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
			 size_t n_bytes, struct ptd_output *output)
{
	(void)output;
	return tally_add(&((struct summary *)state)->tally, batch, bytes,
			 n_bytes / sizeof(struct tally_sum));
}

static int summary_finish(void *state, const struct ptd_stats *stats, struct ptd_output *output)
{
	struct summary *summary = state;

	summary->output = output;
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

static const struct ptd_sink_option options[] = {
	{ "rows", "N  how many rows of each table are shown (20)" },
	{},
};

const struct ptd_sink_ops sink_summary = {
	.size = sizeof(sink_summary),
	.name = "summary",
	.help = "where the instructions went, what was lost and why",
	.options = options,
	.open = summary_open,
	.remember = summary_remember,
	.forget = summary_forget,
	.expand = summary_expand,
	.write = summary_write,
	.finish = summary_finish,
	.free = summary_free,
};
