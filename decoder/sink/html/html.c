/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * HTML
 *
 * A report of the calls as one HTML file, which a browser opens without a network: a timeline, a
 * flame graph, a table of the functions, and the slowest executions of each. What is collected is
 * bounded, so that a page of a long trace opens as quickly as one of a short trace.
 */

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/answer/profile.h"
#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/html/report.h"
#include "decoder/sink/html/trackspans.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "decoder/sink/sinks.h"
#include "util/sha256.h"

/* --- page ------------------------------------------------------------------------------------- */

/*
 * The page of the report, which is the same for all traces: page.html with its style sheet and its
 * scripts, which lie beside it and are part of the program. It is written in two pieces, between
 * which the data stand as elements of the page.
 *
 * A policy in the page's head lets a browser run these scripts and use this style sheet only, and
 * fetch nothing at all: whatever the names of functions are, they stay texts.
 */

/* The file of this name beside this one, as an array that ends where FILE_end is. */
#define FILE_OF_PAGE(name, file)                                                   \
	__asm__(".pushsection .rodata, \"a\", @progbits\n"                         \
		".global page_" #name ", page_" #name "_end\n"                     \
		".hidden page_" #name ", page_" #name "_end\n"                     \
		"page_" #name ": .incbin \"decoder/sink/html/" file "\"\n"         \
		"page_" #name "_end: .byte 0\n"                                    \
		".popsection\n");                                                  \
	extern const char page_##name[] __attribute__((__visibility__("hidden"))); \
	extern const char page_##name##_end[] __attribute__((__visibility__("hidden")))

FILE_OF_PAGE(html, "page.html");
FILE_OF_PAGE(style, "page.css");
FILE_OF_PAGE(model, "model.js");
FILE_OF_PAGE(view, "view.js");
FILE_OF_PAGE(flame, "flame.js");
FILE_OF_PAGE(timeline, "timeline.js");
FILE_OF_PAGE(tables, "tables.js");
FILE_OF_PAGE(report, "report.js");

/* Where the data stand in page.html. */
static const char data_mark[] = "@DATA@";

struct piece {
	const char *start, *end;
};

/* The scripts in the order in which they run. They are one element. */
static const struct piece scripts[] = {
	{ page_model, page_model_end },   { page_view, page_view_end },
	{ page_flame, page_flame_end },   { page_timeline, page_timeline_end },
	{ page_tables, page_tables_end }, { page_report, page_report_end },
};
static const struct piece styles[] = { { page_style, page_style_end } };

static void put_pieces(struct output *output, const struct piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)output_write(output, pieces[i].start,
				   (size_t)(pieces[i].end - pieces[i].start));
}

/* Write the source 'sha256-…' by which a policy allows the pieces. Return: 0 or negative errno. */
static int put_source(struct output *output, const struct piece *pieces, size_t n)
{
	_cleanup_(sha256_freep) struct sha256 *sha256 = NULL;
	struct packed packed = packed_begin(output);
	char hex[SHA256_HEX_SIZE];
	int r;

	r = sha256_new(&sha256);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = sha256_add(sha256, pieces[i].start, (size_t)(pieces[i].end - pieces[i].start));
	if (r == 0)
		r = sha256_finish(sha256, hex);
	if (r < 0)
		return r;
	output_printf(output, "'sha256-");
	for (size_t i = 0; i + 1 < SHA256_HEX_SIZE; i += 2) {
		const char digits[] = { hex[i], hex[i + 1], '\0' };

		packed_byte(&packed, (uint8_t)strtoul(digits, NULL, 16));
	}
	packed_end(&packed);
	output_printf(output, "'");
	return 0;
}

static int put_policy(struct output *output)
{
	int r;

	output_printf(output, "default-src 'none'; base-uri 'none'; form-action 'none'; "
			      "script-src ");
	r = put_source(output, scripts, ARRAY_LEN(scripts));
	if (r < 0)
		return r;
	output_printf(output, "; style-src ");
	return put_source(output, styles, ARRAY_LEN(styles));
}

/*
 * Write page.html from @start up to @mark, which stands in it. Return: what follows the mark.
 */
static const char *put_until(struct output *output, const char *start, const char *mark)
{
	const size_t size = strlen(mark);
	const char *found = memmem(start, (size_t)(page_html_end - start), mark, size);

	assert(found);
	(void)output_write(output, start, (size_t)(found - start));
	return found + size;
}

/* Write the page up to the data, or what follows them. Return: 0 or negative errno. */
static int page_put_head(struct output *output)
{
	const char *rest = put_until(output, page_html, "@POLICY@");
	const int r = put_policy(output);

	if (r < 0)
		return r;
	rest = put_until(output, rest, "@STYLE@");
	put_pieces(output, styles, ARRAY_LEN(styles));
	(void)put_until(output, rest, data_mark);
	return output->error;
}

static int page_put_tail(struct output *output)
{
	const char *rest =
	    memmem(page_html, (size_t)(page_html_end - page_html), data_mark, strlen(data_mark));

	assert(rest);
	rest = put_until(output, rest + strlen(data_mark), "@SCRIPT@");
	put_pieces(output, scripts, ARRAY_LEN(scripts));
	(void)output_write(output, rest, (size_t)(page_html_end - rest));
	return output->error;
}

/* --- html ------------------------------------------------------------------------------------- */

struct html {
	const struct ptd_info *info; /* borrowed */
	struct profile profile;
	struct stacktree tree;
	struct trackspans trackspans;
};

static int html_open(void *state, const struct sink_config *config, struct output *output)
{
	struct html *html = state;

	html->info = config->info;
	html->tree.by_thread = true;
	trackspans_init(&html->trackspans, config->info->clock);
	return 0;
}

static int html_sideband(void *state, const struct ptd_sideband *record)
{
	return viewtracks_sideband(&((struct html *)state)->trackspans.tracks, record);
}

static int html_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	return viewtracks_batch(&((struct html *)state)->trackspans.tracks, batch, t_end);
}

static int html_calls(void *state, const struct ptd_call_batch *calls)
{
	struct html *html = state;
	int r = profile_add(&html->profile, calls);

	if (r == 0)
		r = stacktree_calls(&html->tree, calls);
	return r == 0 ? viewtracks_calls(&html->trackspans.tracks, calls) : r;
}

static int html_mark(void *state, const struct ptd_slice *slice, const struct ptd_mark *mark)
{
	return viewtracks_mark(&((struct html *)state)->trackspans.tracks, slice, mark);
}

static void html_close(void *state)
{
	struct html *html = state;

	trackspans_deinit(&html->trackspans);
	stacktree_deinit(&html->tree);
	profile_deinit(&html->profile);
}

static int html_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct html *html = state;
	struct report report = {
		.info = html->info,
		.stats = stats,
		.profile = &html->profile,
		.tree = &html->tree,
		.trackspans = &html->trackspans,
	};
	int r = stacktree_finish(&html->tree);

	if (r == 0)
		r = viewtracks_finish(&html->trackspans.tracks);
	if (r == 0)
		r = spans_finish(&html->trackspans.spans);
	if (r == 0)
		r = page_put_head(output);
	if (r == 0)
		r = report_put(&report, output);
	if (r == 0)
		r = page_put_tail(output);
	report_deinit(&report);
	return r;
}

const struct sink_ops sink_html = {
	.name = "html",
	.help = "a report for a browser: timeline, flame graph, functions, latencies",
	.state_size = sizeof(struct html),
	.open = html_open,
	.sideband = html_sideband,
	.batch = html_batch,
	.calls = html_calls,
	.mark = html_mark,
	.finish = html_finish,
	.close = html_close,
	.writes_last = true,
};
