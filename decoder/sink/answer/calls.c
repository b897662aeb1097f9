/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls: which function called which, when, and for how long, as a tree. See calltree.h. */

#include "decoder/sink/answer/calltree.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "decoder/sink/sinks.h"

static int read_options(const struct sink_config *config, struct calltree *tree)
{
	uint64_t max_depth = INT64_MAX;
	int r;

	r = option_number(config, "max-depth", &max_depth);
	if (r == 0)
		r = option_duration(config, "min-duration", &tree->min_duration);
	tree->max_depth = max_depth < INT64_MAX ? (int64_t)max_depth : INT64_MAX;
	tree->is_json = sink_option(config, "json");
	return r;
}

static int calls_open(void *state, const struct sink_config *config, struct output *output)
{
	struct calltree *tree = state;
	const int r = read_options(config, tree);

	if (r < 0)
		return r;
	tree->info = config->info;
	tree->output = output;
	if (config->positions != SINK_NO_POSITIONS)
		tree->decoder = config->decoder;
	if (!tree->is_json)
		output_fit(output);
	calltree_begin(tree);
	return 0;
}

static int calls_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	if (batch)
		((struct calltree *)state)->symbols = batch->symbols;
	return 0;
}

static int calls_calls(void *state, const struct ptd_call_batch *calls)
{
	return calltree_calls(state, calls->thread, calls->calls, calls->n_calls);
}

static int calls_mark(void *state, const struct ptd_slice *slice, const struct ptd_mark *mark)
{
	calltree_mark(state, slice, mark);
	return 0;
}

static int calls_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	calltree_end(state);
	return 0;
}

static void calls_close(void *state)
{
	calltree_deinit(state);
}

static const struct sink_option options[] = {
	{ .name = "min-duration", .value = "TIME", .help = "leave out what took less, as 10us" },
	{ .name = "max-depth", .value = "N", .help = "leave out what is deeper" },
	{ .name = "json", .help = "as JSON" },
	{},
};

const struct sink_ops sink_calls = {
	.name = "calls",
	.help = "which function called which, and for how long, as a tree",
	.options = options,
	.state_size = sizeof(struct calltree),
	.open = calls_open,
	.batch = calls_batch,
	.calls = calls_calls,
	.mark = calls_mark,
	.finish = calls_finish,
	.close = calls_close,
};
