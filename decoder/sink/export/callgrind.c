/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Callgrind
 *
 * What each function cost itself, and which functions it called how often and at which cost, in the
 * format of valgrind's callgrind, for callgrind_annotate and KCachegrind. As callgrind has it, what
 * a call costs in all counts only if the function that is called is not open already.
 *
 * A reader takes for the cost of a function in all what its calls cost, but what called the
 * outermost functions is not in the trace. So each name of threads is a function that called them.
 *
 * Source: valgrind, "Callgrind Format Specification".
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/srcline.h"
#include "ptd/decode.h"

struct cost {
	uint64_t t, n_insns;
};

/* Calls of one function by another. */
struct edge {
	uint32_t caller, callee; /* ids of functions; behind them: indices of names of threads */
	uint64_t n_calls;
	struct cost total;
};

/* Where a function begins in the source code. */
struct function_place {
	const char *file; /* NULL: not known */
	uint32_t line;    /* 0: not known */
	bool is_known;    /* it was looked for */
	bool is_named;    /* the function's name was written */
};

struct callgrind {
	struct stacktree tree; /* comes first */
	const struct ptd_info *info;
	struct ptd_calls *calls;     /* the sink's */
	struct ptd_decoder *decoder; /* NULL: no source lines are shown */

	/* Made at the end. */
	uint32_t n_functions;
	struct cost *totals;                /* by node: with what lies below */
	uint32_t *first_child, *next_child; /* by node; STACKTREE_NONE: there is none */
	uint32_t *n_open;                   /* by id of the function, on the stack looked at */
	struct cost *selfs;                 /* likewise: of the function itself */
	VEC(struct edge) edges;             /* by caller and callee */
	struct map edges_by_ends;
	struct function_place *places; /* by id of the function */
	struct map objects;            /* ids of those whose name was written */
	struct map files;              /* numbers of source files by the decoder's string */
};

/* --- costs ------------------------------------------------------------------------------------ */

static void add_cost(struct cost *to, const struct cost *cost)
{
	to->t += cost->t;
	to->n_insns += cost->n_insns;
}

static const struct stacktree_node *node_of(const struct callgrind *cg, size_t i)
{
	return &cg->tree.nodes.items[i];
}

/* Make the totals, the children and the functions' own costs. Each node is behind its parent. */
static int sum_up(struct callgrind *cg, size_t n_functions)
{
	const size_t n = cg->tree.nodes.n;

	cg->totals = calloc(n + 1, sizeof(*cg->totals));
	cg->first_child = malloc((n + 1) * sizeof(*cg->first_child));
	cg->next_child = malloc((n + 1) * sizeof(*cg->next_child));
	cg->n_open = calloc(n_functions + 1, sizeof(*cg->n_open));
	cg->selfs = calloc(n_functions + 1, sizeof(*cg->selfs));
	if (!cg->totals || !cg->first_child || !cg->next_child || !cg->n_open || !cg->selfs)
		return -ENOMEM;
	memset(cg->first_child, 0xff, (n + 1) * sizeof(*cg->first_child));
	memset(cg->next_child, 0xff, (n + 1) * sizeof(*cg->next_child));
	for (size_t i = n; i-- > 0;) {
		const struct stacktree_node *node = node_of(cg, i);
		const struct cost self = { .t = node->t_self, .n_insns = node->n_insns_self };

		add_cost(&cg->totals[i], &self);
		if (node->parent == STACKTREE_NONE)
			continue;
		add_cost(&cg->selfs[node->function], &self);
		add_cost(&cg->totals[node->parent], &cg->totals[i]);
		cg->next_child[i] = cg->first_child[node->parent];
		cg->first_child[node->parent] = (uint32_t)i;
	}
	return 0;
}

/* Count the calls of node @i by the function above it. Return: 0 or -ENOMEM. */
static int count_edge(struct callgrind *cg, uint32_t i)
{
	const struct stacktree_node *node = node_of(cg, i), *above = node_of(cg, node->parent);
	const uint32_t caller =
	    above->function + (above->parent == STACKTREE_NONE ? cg->n_functions : 0);
	const uint64_t key = (uint64_t)caller << 32 | node->function;
	struct edge *edge = map_item(&cg->edges_by_ends, key, &cg->edges,
				     { .caller = caller, .callee = node->function });

	if (!edge)
		return -ENOMEM;
	edge->n_calls += node->n_calls;
	if (cg->n_open[node->function] == 0)
		add_cost(&edge->total, &cg->totals[i]);
	return 0;
}

/* Count the calls of all nodes below the root @i. Return: 0 or -ENOMEM. */
static int count_edges(struct callgrind *cg, uint32_t root)
{
	uint32_t i = cg->first_child[root];

	while (i != STACKTREE_NONE && i != root) {
		if (count_edge(cg, i) < 0)
			return -ENOMEM;
		cg->n_open[node_of(cg, i)->function]++;
		if (cg->first_child[i] != STACKTREE_NONE) {
			i = cg->first_child[i];
			continue;
		}
		/* Go up to what has a next one. */
		for (;;) {
			cg->n_open[node_of(cg, i)->function]--;
			if (cg->next_child[i] != STACKTREE_NONE) {
				i = cg->next_child[i];
				break;
			}
			i = node_of(cg, i)->parent;
			if (i == root)
				break;
		}
	}
	return 0;
}

static int by_ends(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	return COMPARE(a->caller, b->caller) ?: COMPARE(a->callee, b->callee);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Write "KEY=(NUMBER)", and behind it the name when it comes first. */
static void put_id(struct output *output, const char *key, uint64_t number, const char *name)
{
	output_printf(output, "%s=(%" PRIu64 ")", key, number);
	if (name) {
		output_printf(output, " ");
		output_name(output, name[0] ? name : "?");
	}
	output_printf(output, "\n");
}

/* Write which file of the source code a function is in. Return: 0 or -ENOMEM. */
static int put_file(struct callgrind *cg, struct output *output, const char *key, const char *file)
{
	uint64_t number;
	const int r = map_number(&cg->files, (uintptr_t)file, cg->files.n_used + 1, &number);

	put_id(output, key, number, r == 0 ? NULL : file ?: "???");
	return r < 0 ? r : 0;
}

/* Find where the function begins. Return: 0 or -ENOMEM. */
static int find_place(struct callgrind *cg, const struct ptd_function *function)
{
	struct function_place *place = &cg->places[function->id];
	struct ptd_position position;
	int r = 0;

	if (!place->is_known)
		r = srcline_of_function(cg->decoder, function, &position);
	if (r > 0) {
		place->file = position.file;
		place->line = position.line;
	}
	place->is_known = true;
	return r < 0 ? r : 0;
}

/* Write that what follows is of @function. Return: 0 or -ENOMEM. */
static int put_function(struct callgrind *cg, struct output *output,
			const struct ptd_function *function, const char *const keys[static 3])
{
	const struct ptd_object *object = function->object;
	struct function_place *place = &cg->places[function->id];
	int r;

	r = find_place(cg, function);
	if (r < 0)
		return r;
	put_id(output, keys[0], object->id + UINT64_C(1),
	       map_get(&cg->objects, object->id) ? NULL : object->name);
	r = map_put(&cg->objects, object->id, 1);
	if (r == 0)
		r = put_file(cg, output, keys[1], place->file);
	put_id(output, keys[2], function->id + UINT64_C(1),
	       place->is_named ? NULL : function->name);
	place->is_named = true;
	return r;
}

/* Write the costs of what is counted, each behind a blank. */
static void put_events(const struct callgrind *cg, struct output *output, const struct cost *cost)
{
	if (cg->info->clock != PTD_CLOCK_NONE)
		output_printf(output, " %" PRIu64, cost->t);
	if (!cg->info->logs_calls)
		output_printf(output, " %" PRIu64, cost->n_insns);
	output_printf(output, "\n");
}

static void put_cost(const struct callgrind *cg, struct output *output, uint32_t line,
		     const struct cost *cost)
{
	output_printf(output, "%" PRIu32, line);
	put_events(cg, output, cost);
}

static void put_head(const struct callgrind *cg, struct output *output)
{
	static const char *const times[] = { [PTD_CLOCK_NS] = " ns", [PTD_CLOCK_TSC] = " Ticks" };
	struct cost sum = {};

	for (size_t i = 0; i < cg->tree.nodes.n; i++)
		if (node_of(cg, i)->parent == STACKTREE_NONE)
			add_cost(&sum, &cg->totals[i]);
	output_printf(output,
		      "# callgrind format\nversion: 1\ncreator: ptdecode %s\n"
		      "positions: line\nevents:%s%s\nsummary:",
		      ptd_version(),
		      cg->info->clock == PTD_CLOCK_NONE ? "" : times[cg->info->clock],
		      cg->info->logs_calls ? "" : " Instructions");
	put_events(cg, output, &sum);
}

static const char *const own_keys[] = { "ob", "fl", "fn" };
static const char *const called_keys[] = { "cob", "cfi", "cfn" };

/* Write the calls that @caller made at @line: @edges from @i on. Return: 0 or -ENOMEM. */
static int put_calls(struct callgrind *cg, struct output *output,
		     const struct ptd_function *const *functions, uint32_t caller, uint32_t line,
		     size_t *i)
{
	int r = 0;

	for (; r == 0 && *i < cg->edges.n && cg->edges.items[*i].caller == caller; ++*i) {
		const struct edge *edge = &cg->edges.items[*i];

		r = put_function(cg, output, functions[edge->callee], called_keys);
		output_printf(output, "calls=%" PRIu64 " %" PRIu32 "\n", edge->n_calls,
			      cg->places[edge->callee].line);
		put_cost(cg, output, line, &edge->total);
	}
	return r;
}

/* Write a function, and the calls that it made: @edges from @i on. Return: 0 or -ENOMEM. */
static int put_entry(struct callgrind *cg, struct output *output,
		     const struct ptd_function *const *functions, uint32_t id, size_t *i)
{
	int r;

	output_printf(output, "\n");
	r = put_function(cg, output, functions[id], own_keys);
	put_cost(cg, output, cg->places[id].line, &cg->selfs[id]);
	return r < 0 ? r : put_calls(cg, output, functions, id, cg->places[id].line, i);
}

/* The same of the threads of a name, whose root is the node @root. */
static int put_thread(struct callgrind *cg, struct output *output,
		      const struct ptd_function *const *functions, uint32_t root, size_t *i)
{
	const struct stacktree_node *node = node_of(cg, root);
	const uint32_t id = cg->n_functions + node->function;
	const struct cost self = { .t = node->t_self, .n_insns = node->n_insns_self };
	char name[OUTPUT_NAME_MAX];
	int r;

	(void)snprintf(name, sizeof(name), "[thread %s]",
		       cg->tree.names.items[node->function].text);
	output_printf(output, "\n");
	put_id(output, "ob", 0, node->function == 0 ? "???" : NULL);
	r = put_file(cg, output, "fl", NULL);
	put_id(output, "fn", id + UINT64_C(1), name);
	put_cost(cg, output, 0, &self);
	return r < 0 ? r : put_calls(cg, output, functions, id, 0, i);
}

static int put_all(struct callgrind *cg, struct output *output)
{
	const struct ptd_function *const *functions;
	size_t n_functions, edge = 0;
	int r;

	functions = ptd_calls_functions(cg->calls, &n_functions);
	cg->n_functions = (uint32_t)n_functions;
	r = sum_up(cg, n_functions);
	for (uint32_t i = 0; r == 0 && i < cg->tree.nodes.n; i++)
		if (node_of(cg, i)->parent == STACKTREE_NONE)
			r = count_edges(cg, i);
	cg->places = calloc(n_functions + 1, sizeof(*cg->places));
	if (r < 0 || !cg->places)
		return -ENOMEM;
	vec_sort(&cg->edges, by_ends);
	put_head(cg, output);
	for (uint32_t id = 0; r == 0 && id < n_functions; id++) {
		const bool calls = edge < cg->edges.n && cg->edges.items[edge].caller == id;

		if (calls || cg->selfs[id].t > 0 || cg->selfs[id].n_insns > 0)
			r = put_entry(cg, output, functions, id, &edge);
	}
	/* Roots come in the order of their names. */
	for (uint32_t i = 0; r == 0 && i < cg->tree.nodes.n; i++)
		if (node_of(cg, i)->parent == STACKTREE_NONE)
			r = put_thread(cg, output, functions, i, &edge);
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static void callgrind_close(void *state)
{
	struct callgrind *cg = state;

	free(cg->totals);
	free(cg->first_child);
	free(cg->next_child);
	free(cg->n_open);
	free(cg->selfs);
	free(cg->places);
	vec_deinit(&cg->edges);
	map_deinit(&cg->edges_by_ends);
	map_deinit(&cg->objects);
	map_deinit(&cg->files);
	stacktree_deinit(&cg->tree);
}

static int callgrind_open(void *state, const struct sink_config *config, struct output *output)
{
	struct callgrind *cg = state;

	cg->info = config->info;
	cg->calls = config->calls;
	if (config->positions != SINK_NO_POSITIONS)
		cg->decoder = config->decoder;
	return 0;
}

static int callgrind_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct callgrind *cg = state;
	const int r = stacktree_finish(&cg->tree);

	return r < 0 ? r : put_all(cg, output);
}

const struct sink_ops sink_callgrind = {
	.name = "callgrind",
	.help = "what functions cost and called, for callgrind_annotate and KCachegrind",
	.state_size = sizeof(struct callgrind),
	.open = callgrind_open,
	.calls = stacktree_calls,
	.finish = callgrind_finish,
	.omission = stacktree_omission,
	.close = callgrind_close,
	.writes_last = true,
};
