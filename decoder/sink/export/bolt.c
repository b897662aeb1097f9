/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bolt
 *
 * The edges of one object (edges.h) in the form that perf2bolt reads as pre-aggregated (-pa):
 *
 *	B FROM TO COUNT MISPREDICTED	a branch was taken
 *	F FROM TO COUNT			code ran from where a branch led to up to the next branch
 *	f FROM TO COUNT			likewise, and the first of them is in another object
 *
 * PT does not say what was mispredicted.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "decoder/sink/export/edges.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

static int bolt_open(void *state, const struct sink_config *config, struct output *output)
{
	return edges_init(state, sink_option(config, "binary"));
}

static int bolt_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	return edges_add(state, batch);
}

static int bolt_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	static const char letters[_EDGE_KINDS] = { 'B', 'F', 'f' };

	for (unsigned kind = 0; kind < _EDGE_KINDS; kind++) {
		struct edge *list;
		size_t n;
		int r;

		r = edges_list(state, kind, &list, &n);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			output_printf(output, "%c %" PRIx64 " %" PRIx64 " %" PRIu64 "%s\n",
				      letters[kind], list[i].from, list[i].to, list[i].n,
				      kind == EDGE_BRANCH ? " 0" : "");
		free(list);
	}
	return 0;
}

static const char *bolt_omission(void *state)
{
	return edges_complaint(state);
}

static void bolt_close(void *state)
{
	edges_deinit(state);
}

const struct sink_ops sink_bolt = {
	.name = "bolt",
	.help = "how often branches of an object were taken, for perf2bolt -pa",
	.options = edges_options,
	.state_size = sizeof(struct edges),
	.open = bolt_open,
	.batch = bolt_batch,
	.finish = bolt_finish,
	.omission = bolt_omission,
	.close = bolt_close,
	.writes_last = true,
	.no_symbols = true,
};
