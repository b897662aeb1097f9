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

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "decoder/sink/export/edges.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

static int bolt_write(void *state, const struct ptd_batch *batch, const void *bytes, size_t n_bytes,
		      struct ptd_output *output)
{
	(void)bytes;
	(void)n_bytes;
	(void)output;
	return edges_add(state, batch);
}

static int bolt_finish(void *state, const struct ptd_stats *stats, struct ptd_output *output)
{
	static const char letters[_EDGE_KINDS] = { 'B', 'F', 'f' };

	(void)stats;
	for (unsigned kind = 0; kind < _EDGE_KINDS; kind++) {
		struct edge *list;
		size_t n;
		int r;

		r = edges_list(state, kind, &list, &n);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			ptd_output_printf(output, "%c %" PRIx64 " %" PRIx64 " %" PRIu64 "%s\n",
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

static void bolt_free(void *state)
{
	edges_deinit(state);
	free(state);
}

static int bolt_open(const struct ptd_sink_config *config, struct ptd_output *output,
		     void **ret_state)
{
	struct edges *edges = malloc(sizeof(*edges));
	int r;

	(void)output;
	if (!edges)
		return -ENOMEM;
	r = edges_init(edges, ptd_sink_option(config, "binary"));
	if (r < 0) {
		bolt_free(edges);
		return r;
	}
	*ret_state = edges;
	return 0;
}

const struct ptd_sink_ops sink_bolt = {
	.size = sizeof(sink_bolt),
	.name = "bolt",
	.help = "how often branches of an object were taken, for perf2bolt -pa",
	.options = edges_options,
	.open = bolt_open,
	.write = bolt_write,
	.finish = bolt_finish,
	.omission = bolt_omission,
	.free = bolt_free,
	.writes_last = true,
	.no_symbols = true,
};
