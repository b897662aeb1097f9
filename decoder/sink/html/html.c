/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * HTML
 *
 * A report of the calls as one HTML file, which a browser opens without a network: a timeline, a
 * flame graph, a table of the functions, and the slowest executions of each. What is collected is
 * bounded, so that a page of a long trace opens as quickly as one of a short trace.
 */

#include <errno.h>
#include <stdlib.h>

#include "decoder/sink/answer/profile.h"
#include "decoder/sink/callfeed.h"
#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/html/page.h"
#include "decoder/sink/html/report.h"
#include "decoder/sink/html/trackspans.h"
#include "decoder/sink/sinks.h"

struct html {
	const struct ptd_info *info; /* borrowed */
	struct callfeed feed;
	struct profile profile;
	struct stacktree tree;
	struct trackspans trackspans;
};

static void html_free(void *state)
{
	struct html *html = state;

	trackspans_deinit(&html->trackspans);
	stacktree_deinit(&html->tree);
	profile_deinit(&html->profile);
	callfeed_deinit(&html->feed);
	free(html);
}

static int html_open(const struct ptd_sink_config *config, struct ptd_output *output,
		     void **ret_state)
{
	struct html *html = calloc(1, sizeof(*html));
	int r;

	(void)output;
	if (!html)
		return -ENOMEM;
	html->info = config->info;
	html->tree.by_thread = true;
	trackspans_init(&html->trackspans, config->info->clock);
	r = callfeed_init(&html->feed, config->info);
	if (r < 0) {
		html_free(html);
		return r;
	}
	*ret_state = html;
	return 0;
}

static int html_sideband(void *state, const struct ptd_sideband *record, struct ptd_output *output)
{
	struct html *html = state;

	(void)output;
	return viewtracks_sideband(&html->trackspans.tracks, record);
}

/* Take calls of one thread. */
static int take_calls(struct html *html, const struct ptd_call_batch *batch)
{
	int r = profile_add(&html->profile, batch);

	for (size_t i = 0; r == 0 && i < batch->n_calls; i++) {
		r = stacktree_call(&html->tree, batch->thread, &batch->calls[i]);
		if (r == 0)
			r = viewtracks_call(&html->trackspans.tracks, batch->thread,
					    &batch->calls[i]);
	}
	return r;
}

/* Take the calls that there are for now, and the marks between them. */
static int take_items(struct html *html)
{
	struct callfeed_item item;
	int r;

	while ((r = callfeed_next(&html->feed, &item)) == 0) {
		if (item.mark)
			r = viewtracks_mark(&html->trackspans.tracks, item.slice, item.mark);
		else
			r = take_calls(html, &(struct ptd_call_batch){
						 .thread = item.thread,
						 .calls = item.call,
						 .n_calls = callfeed_take_on(&html->feed),
					     });
		if (r < 0)
			return r;
	}
	return r == PTD_END ? 0 : r;
}

static int html_write(void *state, const struct ptd_batch *batch, const void *bytes, size_t n_bytes,
		      struct ptd_output *output)
{
	struct html *html = state;
	int r = viewtracks_batch(&html->trackspans.tracks, batch);

	(void)bytes;
	(void)n_bytes;
	(void)output;
	if (r == 0)
		r = callfeed_batch(&html->feed, batch);
	return r < 0 ? r : take_items(html);
}

static int html_finish(void *state, const struct ptd_stats *stats, struct ptd_output *output)
{
	struct html *html = state;
	struct report report = {
		.info = html->info,
		.stats = stats,
		.profile = &html->profile,
		.tree = &html->tree,
		.trackspans = &html->trackspans,
	};
	int r = callfeed_finish(&html->feed);

	if (r == 0)
		r = take_items(html);
	if (r == 0)
		r = stacktree_finish(&html->tree);
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

const struct ptd_sink_ops sink_html = {
	.size = sizeof(sink_html),
	.name = "html",
	.help = "a report for a browser: timeline, flame graph, functions, latencies",
	.open = html_open,
	.sideband = html_sideband,
	.write = html_write,
	.finish = html_finish,
	.free = html_free,
	.takes_stated = true,
	.writes_last = true,
};
