/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls: which function called which, when, and for how long, as a tree. See calltree.h. */

#include <errno.h>

#include "decoder/sink/answer/calltree.h"
#include "decoder/sink/callfeed.h"
#include "decoder/sink/option.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

struct calls {
	struct callfeed feed;
	struct calltree tree;
};

static void calls_free(void *state)
{
	struct calls *calls = state;

	calltree_deinit(&calls->tree);
	callfeed_deinit(&calls->feed);
	free(calls);
}

static int read_options(const struct ptd_sink_config *config, struct calltree *tree)
{
	uint64_t max_depth = INT64_MAX;
	int r;

	r = option_number(config, "max-depth", &max_depth);
	if (r == 0)
		r = option_duration(config, "min-duration", &tree->min_duration);
	tree->max_depth = max_depth < INT64_MAX ? (int64_t)max_depth : INT64_MAX;
	tree->is_json = ptd_sink_option(config, "json");
	return r;
}

static int calls_open(const struct ptd_sink_config *config, struct ptd_output *output,
		      void **ret_state)
{
	struct calls *calls = calloc(1, sizeof(*calls));
	int r;

	if (!calls)
		return -ENOMEM;
	calls->tree.info = config->info;
	calls->tree.output = output;
	if (config->positions != PTD_SHOW_NO_POSITIONS)
		calls->tree.decoder = config->decoder;
	r = read_options(config, &calls->tree);
	if (r == 0)
		r = callfeed_init(&calls->feed, config->info);
	if (r < 0) {
		calls_free(calls);
		return r;
	}
	if (!calls->tree.is_json)
		output_fit(output);
	calltree_begin(&calls->tree);
	*ret_state = calls;
	return 0;
}

/* Write the calls that there are for now, and the marks between them. */
static int write_calls(struct calls *calls)
{
	struct callfeed_item item;
	int r;

	while ((r = callfeed_next(&calls->feed, &item)) == 0) {
		if (item.mark) {
			calltree_mark(&calls->tree, item.slice, item.mark);
			continue;
		}
		r = calltree_calls(&calls->tree, item.thread, item.call,
				   callfeed_take_on(&calls->feed));
		if (r < 0)
			return r;
	}
	return r == PTD_END ? 0 : r;
}

static int calls_write(void *state, const struct ptd_batch *batch, const void *bytes,
		       size_t n_bytes, struct ptd_output *output)
{
	struct calls *calls = state;
	const int r = callfeed_batch(&calls->feed, batch);

	calls->tree.symbols = batch->symbols;
	(void)bytes;
	(void)n_bytes;
	(void)output;
	return r < 0 ? r : write_calls(calls);
}

static int calls_logged(void *state, const struct ptd_logged *logged)
{
	struct calls *calls = state;
	const int r = callfeed_logged(&calls->feed, logged);

	calls->tree.symbols = logged->batch.symbols;
	return r < 0 ? r : write_calls(calls);
}

static int calls_finish(void *state, const struct ptd_stats *stats, struct ptd_output *output)
{
	struct calls *calls = state;
	int r = callfeed_finish(&calls->feed);

	(void)stats;
	(void)output;
	if (r == 0)
		r = write_calls(calls);
	calltree_end(&calls->tree);
	return r;
}

static const struct ptd_sink_option options[] = {
	{ .name = "min-duration", .value = "TIME", .help = "leave out what took less, as 10us" },
	{ .name = "max-depth", .value = "N", .help = "leave out what is deeper" },
	{ .name = "json", .help = "as JSON" },
	{},
};

const struct ptd_sink_ops sink_calls = {
	.size = sizeof(sink_calls),
	.name = "calls",
	.help = "which function called which, and for how long, as a tree",
	.options = options,
	.open = calls_open,
	.write = calls_write,
	.logged = calls_logged,
	.finish = calls_finish,
	.free = calls_free,
};
