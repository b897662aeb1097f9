/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Collapsed stacks
 *
 * A line for each different stack: the name of the thread and the functions that were open, the
 * innermost last, separated by semicolons; a blank; and what the innermost function itself cost
 * there. Programs that draw flame graphs read it.
 *
 * A semicolon in a name becomes a colon. What may not be printed becomes a question mark, as
 * everywhere.
 */

#include <errno.h>
#include <string.h>

#include "decoder/sink/column.h"
#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "util/arena.h"

/* Names as lines have them, by numbers. */
struct shown_names {
	VEC(struct shown_name {
		const char *text; /* NULL: it was not made yet */
		size_t size;
	})
	items;
};

struct collapsed {
	struct stacktree tree;   /* comes first */
	struct ptd_calls *calls; /* the sink's */
	bool in_insns;
	uint64_t unit;      /* of the costs that are written, in that of the stream's clock */
	uint64_t rest;      /* of the lines so far, less than a unit */
	VEC(uint32_t) path; /* of the line that is written */
	struct shown_names functions, threads; /* by their ids; by their indices in the tree */
	struct arena texts;
};

static void collapsed_close(void *state)
{
	struct collapsed *collapsed = state;

	vec_deinit(&collapsed->path);
	vec_deinit(&collapsed->functions.items);
	vec_deinit(&collapsed->threads.items);
	arena_deinit(&collapsed->texts);
	stacktree_deinit(&collapsed->tree);
}

/* Return: 0; or -EINVAL if the stream has no such unit. */
static int set_unit(struct collapsed *collapsed, const struct sink_config *config)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	const char *unit = sink_option(config, "unit");

	collapsed->unit = 1;
	collapsed->in_insns = config->info->clock == PTD_CLOCK_NONE;
	if (!unit)
		return 0;
	collapsed->in_insns = strcmp(unit, "instructions") == 0;
	if (collapsed->in_insns)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(unit, units[i].name) == 0 && config->info->clock == PTD_CLOCK_NS) {
			collapsed->unit = units[i].ns;
			return 0;
		}
	return -EINVAL;
}

static int collapsed_open(void *state, const struct sink_config *config, struct output *output)
{
	((struct collapsed *)state)->calls = config->calls;
	return set_unit(state, config);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Make what lines have for @name. Return: 0 or -ENOMEM. */
static int make_name(struct collapsed *collapsed, const char *name, struct shown_name *ret_name)
{
	char text[OUTPUT_NAME_MAX];
	/* Readers take nothing for no name at all. */
	const size_t size = output_printable(text, name[0] ? name : "?", sizeof(text));

	for (size_t i = 0; i < size; i++)
		if (text[i] == ';')
			text[i] = ':';
	ret_name->size = size;
	ret_name->text = arena_copy(&collapsed->texts, text, size);
	return ret_name->text ? 0 : -ENOMEM;
}

/* Write the name with that number: it stands in many lines, and is made once. */
static int put_name(struct collapsed *collapsed, struct shown_names *names, uint32_t number,
		    const char *name, struct output *output)
{
	struct shown_name *shown = vec_at(&names->items, number, {});

	if (!shown || (!shown->text && make_name(collapsed, name, shown) < 0))
		return -ENOMEM;
	if (output_reserve(output, OUTPUT_NAME_MAX) < 0)
		return output->error;
	memcpy(output->buffer + output->n_used, shown->text, shown->size);
	output->n_used += shown->size;
	return 0;
}

static void put_cost(struct output *output, uint64_t cost)
{
	char text[COLUMN_MAX + 2], *p = text;

	*p++ = ' ';
	p = column_number(p, cost, 0, ' ');
	*p++ = '\n';
	(void)output_write(output, text, (size_t)(p - text));
}

static int put_line(struct collapsed *collapsed, uint32_t i, struct output *output)
{
	const struct stacktree *tree = &collapsed->tree;
	const struct stacktree_node *node = &tree->nodes.items[i];
	const uint64_t exact = collapsed->in_insns ? node->n_insns_self : node->t_self;
	const uint64_t cost = (exact + collapsed->rest) / collapsed->unit;
	const struct ptd_function *const *functions;
	size_t n_functions;
	int r;

	/* What is less than a unit counts where it makes a whole one with what follows. So the sum
	 * stays what it is, however many stacks cost less than a unit. */
	collapsed->rest = (exact + collapsed->rest) % collapsed->unit;
	if (cost == 0)
		return 0;
	functions = ptd_calls_functions(collapsed->calls, &n_functions);
	collapsed->path.n = 0;
	for (; node->parent != STACKTREE_NONE; node = &tree->nodes.items[node->parent])
		if (vec_push(&collapsed->path, node->function) < 0)
			return -ENOMEM;
	r = put_name(collapsed, &collapsed->threads, node->function,
		     tree->names.items[node->function].text, output);
	while (r == 0 && collapsed->path.n > 0) {
		const uint32_t id = collapsed->path.items[--collapsed->path.n];

		r = output_write(output, ";", 1);
		if (r == 0)
			r = put_name(collapsed, &collapsed->functions, id, functions[id]->name,
				     output);
	}
	put_cost(output, cost);
	return r < 0 ? r : output->error;
}

/* --- the stream ------------------------------------------------------------------------------- */

static int collapsed_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct collapsed *collapsed = state;
	int r = stacktree_finish(&collapsed->tree);

	for (uint32_t i = 0; r == 0 && i < collapsed->tree.nodes.n; i++)
		r = put_line(collapsed, i, output);
	return r;
}

static const struct sink_option options[] = {
	{ .name = "unit", .value = "ns|us|ms|s|instructions", .help = "what is counted (ns)" },
	{},
};

const struct sink_ops sink_collapsed = {
	.name = "collapsed",
	.help = "collapsed stacks, for flame graphs",
	.options = options,
	.state_size = sizeof(struct collapsed),
	.open = collapsed_open,
	.calls = stacktree_calls,
	.finish = collapsed_finish,
	.omission = stacktree_omission,
	.close = collapsed_close,
	.writes_last = true,
};
