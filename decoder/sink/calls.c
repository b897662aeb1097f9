/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls: which function called which, when, and for how long, as a tree. See calltree.h. */

#include <errno.h>

#include "decoder/sink/calltree.h"
#include "decoder/sink/option.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "ptd/decode.h"

struct calls {
	struct ptd_calls *layer;
	struct calltree tree;
};

static void calls_free(void *state)
{
	struct calls *calls = state;

	calltree_deinit(&calls->tree);
	ptd_calls_free(calls->layer);
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
		r = ptd_calls_new(config->info, &calls->layer);
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

/*
 * Write the calls that the layer has found, of @batch as a rule, whose marks stand between them; it
 * may be NULL. The functions that a gap ends are left before it.
 */
static int write_calls(struct calls *calls, const struct ptd_batch *batch)
{
	const struct ptd_call_batch *found;
	size_t m = 0;
	int r;

	while ((r = ptd_calls_next(calls->layer, &found)) == 0) {
		for (size_t i = 0; i < found->n_calls; i++) {
			const struct ptd_call *call = &found->calls[i];
			const bool is_before =
			    call->kind == PTD_CALL_LEAVE && call->how == PTD_CALL_BY_GAP;

			while (found->batch && m < batch->n_marks &&
			       batch->marks[m].run + is_before <= call->run)
				calltree_mark(&calls->tree, batch->slice, &batch->marks[m++]);
			r = calltree_call(&calls->tree, found->thread, call);
			if (r < 0)
				return r;
		}
	}
	while (batch && m < batch->n_marks)
		calltree_mark(&calls->tree, batch->slice, &batch->marks[m++]);
	return r == PTD_END ? 0 : r;
}

static int calls_write(void *state, const struct ptd_batch *batch, const void *bytes,
		       size_t n_bytes, struct ptd_output *output)
{
	struct calls *calls = state;
	const int r = ptd_calls_batch(calls->layer, batch);

	(void)bytes;
	(void)n_bytes;
	(void)output;
	return r < 0 ? r : write_calls(calls, batch);
}

static int calls_finish(void *state, const struct ptd_stats *stats, struct ptd_output *output)
{
	struct calls *calls = state;
	int r = ptd_calls_finish(calls->layer);

	(void)stats;
	(void)output;
	if (r == 0)
		r = write_calls(calls, NULL);
	calltree_end(&calls->tree);
	return r;
}

static const struct ptd_sink_option options[] = {
	{ .name = "min-duration", .help = "TIME  leave out what took less, as 10us" },
	{ .name = "max-depth", .help = "N  leave out what is deeper" },
	{ .name = "json", .help = "as JSON", .is_flag = true },
	{},
};

const struct ptd_sink_ops sink_calls = {
	.size = sizeof(sink_calls),
	.name = "calls",
	.help = "which function called which, and for how long, as a tree",
	.options = options,
	.open = calls_open,
	.write = calls_write,
	.finish = calls_finish,
	.free = calls_free,
};
