/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Branches
 *
 * How often each conditional branch was taken, and where each indirect jump or call led to. A
 * branch is named by its object and its address as linked, so that the counts of all processes that
 * execute it are one, and tools that optimize a program by its profile can use them.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/branchcount.h"
#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "util/vec.h"

#define TARGETS_SHOWN 8 /* of one indirect branch, in the text */

struct branches {
	uint64_t n_rows;
	struct branchcount count;
	const struct ptd_symbol *const *symbols; /* by id; borrowed from the stream */
	size_t n_symbols;
};

static int branches_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct branches *branches = state;

	branches->symbols = batch->symbols;
	branches->n_symbols = batch->n_symbols;
	return branchcount_batch(&branches->count, batch);
}

/* --- the rows --------------------------------------------------------------------------------- */

static int by_count(const void *pa, const void *pb)
{
	const struct branch *a = pa, *b = pb;

	return COMPARE(b->n, a->n) ?: branch_place_compare(&a->place, &b->place);
}

static int by_target_count(const void *pa, const void *pb)
{
	const struct branch_target *a = pa, *b = pb;

	return COMPARE(b->n, a->n) ?: branch_place_compare(&a->place, &b->place);
}

/* Bring the most executed rows, and targets, first. */
static int branches_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct branches *branches = state;
	const int r = branchcount_end(&branches->count);

	if (r < 0)
		return r;
	vec_sort(&branches->count.rows, by_count);
	for (size_t i = 0; i < branches->count.rows.n; i++)
		vec_sort(&branches->count.rows.items[i].targets, by_target_count);
	return 0;
}

static const char *kind_of(const struct branch *branch)
{
	return branch->iclass == PTD_INSN_JUMP_COND       ? "cond"
	       : branch->iclass == PTD_INSN_CALL_INDIRECT ? "call"
							  : "jump";
}

/* --- text ------------------------------------------------------------------------------------- */

static const struct ptd_symbol *symbol_of(const struct branches *branches,
					  const struct branch_place *place)
{
	return place->symbol != PTD_NO_SYMBOL && place->symbol < branches->n_symbols
		   ? branches->symbols[place->symbol]
		   : NULL;
}

static void put_place(const struct branches *branches, const struct branch_place *place,
		      struct output *output)
{
	const struct ptd_symbol *symbol = symbol_of(branches, place);

	if (symbol) {
		output_name(output, symbol->name);
		output_printf(output, "+0x%" PRIx64, place->address - symbol->address);
	} else {
		output_printf(output, "0x%" PRIx64, place->address);
	}
	output_object(output, place->object->name);
}

static void put_count(uint64_t n, uint64_t whole, struct output *output)
{
	char text[COLUMN_MAX];

	*column_percent(text, n, whole) = '\0';
	output_printf(output, "%20" PRIu64 " %s", n, text);
}

static void put_way(const struct branches *branches, const struct branch *branch, uint64_t n,
		    const char *name, const struct branch_place *place, struct output *output)
{
	if (n == 0)
		return;
	put_count(n, branch->n, output);
	output_printf(output, "        %s", name);
	if (place && place->object) {
		output_printf(output, " ");
		put_place(branches, place, output);
	}
	output_printf(output, "\n");
}

static void put_branch(const struct branches *branches, const struct branch *branch, uint64_t whole,
		       struct output *output)
{
	uint64_t n_others = branch->n_others;

	put_count(branch->n, whole, output);
	output_printf(output, "  %s  ", kind_of(branch));
	put_place(branches, &branch->place, output);
	output_printf(output, "\n");
	put_way(branches, branch, branch->n_taken, "taken, to", &branch->taken, output);
	put_way(branches, branch, branch->n_not_taken, "not taken", NULL, output);
	for (size_t i = 0; i < branch->targets.n; i++) {
		const struct branch_target *target = &branch->targets.items[i];

		if (i < TARGETS_SHOWN)
			put_way(branches, branch, target->n, "to", &target->place, output);
		else
			n_others += target->n;
	}
	put_way(branches, branch, n_others, "to others", NULL, output);
	put_way(branches, branch, branch->n_unknown, "not known", NULL, output);
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct branches *branches = state;
	const size_t n_rows = branches->count.rows.n;
	uint64_t n = 0, n_rest = 0;

	for (size_t i = 0; i < n_rows; i++)
		n += branches->count.rows.items[i].n;
	output_printf(output,
		      "Branches: %zu, conditional or indirect\nExecuted: %" PRIu64
		      "\n\n%20s %7s  kind  branch, and the ways it went, each with its part\n",
		      n_rows, n, "executed", "%");
	for (size_t i = 0; i < n_rows; i++) {
		const struct branch *branch = &branches->count.rows.items[i];

		if (i < branches->n_rows)
			put_branch(branches, branch, n, output);
		else
			n_rest += branch->n;
	}
	if (n_rows > branches->n_rows) {
		put_count(n_rest, n, output);
		output_printf(output, "  (%zu other%s)\n", n_rows - (size_t)branches->n_rows,
			      plural(n_rows - branches->n_rows));
	}
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_json_place(const struct branches *branches, struct json *json,
			   const struct branch_place *place)
{
	const struct ptd_symbol *symbol = symbol_of(branches, place);

	json_text(json, "object", place->object->name);
	json_address(json, "address", place->address);
	json_text(json, "symbol", symbol ? symbol->name : NULL);
	if (symbol)
		json_number(json, "offset", place->address - symbol->address);
}

static void put_json_branch(const struct branches *branches, struct json *json,
			    const struct branch *branch)
{
	json_object(json, NULL);
	json_text(json, "kind", kind_of(branch));
	put_json_place(branches, json, &branch->place);
	json_number(json, "executed", branch->n);
	if (branch->iclass == PTD_INSN_JUMP_COND) {
		json_number(json, "taken", branch->n_taken);
		json_number(json, "not_taken", branch->n_not_taken);
	} else {
		json_array(json, "targets");
		for (size_t i = 0; i < branch->targets.n; i++) {
			json_object(json, NULL);
			put_json_place(branches, json, &branch->targets.items[i].place);
			json_number(json, "executed", branch->targets.items[i].n);
			json_close(json);
		}
		json_close(json);
		json_number(json, "others", branch->n_others);
	}
	json_number(json, "unknown", branch->n_unknown);
	json_close(json);
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	const struct branches *branches = state;

	json_array(json, "branches");
	for (size_t i = 0; i < branches->count.rows.n; i++)
		put_json_branch(branches, json, &branches->count.rows.items[i]);
	json_close(json);
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static int branches_open(void *state, const struct sink_config *config, struct output *output)
{
	((struct branches *)state)->n_rows = config->n_rows;
	return 0;
}

static void branches_close(void *state)
{
	branchcount_deinit(&((struct branches *)state)->count);
}

static const struct sink_option options[] = {
	{ .name = "rows", .value = "N", .help = "how many branches are shown (20)" },
	{ .name = "json", .help = "as JSON, all branches" },
	{},
};

const struct sink_ops sink_branches = {
	.name = "branches",
	.help = "which way each conditional or indirect branch went, and how often",
	.options = options,
	.state_size = sizeof(struct branches),
	.open = branches_open,
	.batch = branches_batch,
	.finish = branches_finish,
	.text = put_text,
	.json = put_json,
	.close = branches_close,
	.writes_last = true,
};
