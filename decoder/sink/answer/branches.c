/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Branches
 *
 * How often each conditional branch was taken, and where each indirect jump or call led to. A
 * branch is named by its object and its address as linked, so that the counts of all processes that
 * execute it are one, and tools that optimize a program by its profile can use them.
 *
 * Which way a branch went follows from the run behind it. The way of the last branch before a gap,
 * a system call or a switch of threads is not known, unless the mark there says where the thread
 * was interrupted.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/x86/insn.h"
#include "util/vec.h"

#define TARGETS_MAX   64 /* of one indirect branch of a block; further ones are counted as one */
#define TARGETS_SHOWN 8  /* of one indirect branch, in the text */

/* A place in the code. */
struct place {
	const struct ptd_object *object; /* borrowed */
	uint64_t address;                /* as linked */
	uint32_t symbol;
};

struct target {
	struct place place;
	uint64_t n;
};

struct branch {
	struct place place;
	uint8_t iclass;             /* enum ptd_insn_class */
	uint64_t n;                 /* how often it was executed */
	uint64_t n_taken;           /* of a conditional branch */
	uint64_t n_not_taken;       /* likewise */
	uint64_t n_unknown;         /* the way it went is not known */
	uint64_t n_others;          /* it went to more targets than are kept */
	struct place taken;         /* of a conditional branch: where it leads to */
	VEC(struct target) targets; /* of an indirect one */
	size_t last;                /* its target that was used last */
};

struct branches {
	uint64_t n_rows;
	VEC(struct branch) by_block; /* by block id; n is 0 if there is none */
	uint64_t slice;              /* of the last run */
	struct ptd_run pending;      /* it ended with a branch whose way is not known yet */
	bool is_pending;
	const struct ptd_symbol *const *symbols; /* by id; borrowed from the stream */
	size_t n_symbols;
};

/* --- counting --------------------------------------------------------------------------------- */

static bool is_counted(uint8_t iclass)
{
	return iclass == PTD_INSN_JUMP_COND || iclass == PTD_INSN_JUMP_INDIRECT ||
	       iclass == PTD_INSN_CALL_INDIRECT;
}

static struct place place_of(const struct ptd_block *block, size_t insn)
{
	return (struct place){ block->object, block->address + block->insns[insn].offset,
			       block->insns[insn].symbol };
}

/* Return: the branch at the end of the block, valid until the next call; NULL: no memory. */
static struct branch *get_branch(struct branches *branches, const struct ptd_block *block)
{
	struct branch *branch = vec_at(&branches->by_block, block->id, {});

	if (branch && branch->n == 0) {
		branch->place = place_of(block, block->n_insns - 1u);
		branch->iclass = block->insns[block->n_insns - 1u].iclass;
	}
	return branch;
}

static int same_place(const struct place *a, const struct place *b)
{
	return a->object == b->object && a->address == b->address;
}

/* Count @n executions that led to @place. Return: 0 or -ENOMEM. */
static int add_target(struct branch *branch, const struct place *place, uint64_t n)
{
	for (size_t k = 0; k < branch->targets.n; k++) {
		const size_t i = (branch->last + k) % branch->targets.n;

		if (!same_place(&branch->targets.items[i].place, place))
			continue;
		branch->targets.items[i].n += n;
		branch->last = i;
		return 0;
	}
	if (branch->targets.n == TARGETS_MAX) {
		branch->n_others += n;
		return 0;
	}
	return vec_push(&branch->targets, { *place, n });
}

/*
 * Count the branch of the pending run, behind which the thread went on at @ip, in @next if that is
 * not NULL. Return: 0 or -ENOMEM.
 */
static int count_branch(struct branches *branches, uint64_t ip, const struct ptd_run *next)
{
	const struct ptd_run *run = &branches->pending;
	const struct ptd_block *block = run->block;
	const struct ptd_insn *last = &block->insns[block->n_insns - 1];
	struct branch *branch = get_branch(branches, block);
	struct place place;

	if (!branch)
		return -ENOMEM;
	branches->is_pending = false;
	branch->n++;
	if (branch->iclass == PTD_INSN_JUMP_COND) {
		if (ip == insn_wrap(block->mode, run->base + block->size)) {
			branch->n_not_taken++;
		} else if (ip == insn_target(block->mode, block->bytes + last->offset, last->size,
					     run->base + (uint64_t)block->target)) {
			branch->n_taken++;
			if (next && !branch->taken.object)
				branch->taken = place_of(next->block, next->first);
		} else {
			branch->n_unknown++;
		}
		return 0;
	}
	if (!next) {
		branch->n_unknown++;
		return 0;
	}
	place = place_of(next->block, next->first);
	return add_target(branch, &place, 1);
}

static int count_unknown(struct branches *branches)
{
	struct branch *branch;

	if (!branches->is_pending)
		return 0;
	branch = get_branch(branches, branches->pending.block);
	if (!branch)
		return -ENOMEM;
	branches->is_pending = false;
	branch->n++;
	branch->n_unknown++;
	return 0;
}

/* A mark may stand between a branch and where it led to. */
static int take_mark(struct branches *branches, const struct ptd_mark *mark)
{
	switch (mark->kind) {
	case PTD_MARK_ASYNC:
		if (branches->is_pending && mark->ip &&
		    branches->pending.block->insns[branches->pending.block->n_insns - 1u].iclass ==
			PTD_INSN_JUMP_COND)
			return count_branch(branches, mark->ip, NULL);
		return count_unknown(branches);
	case PTD_MARK_GAP:
	case PTD_MARK_OFF:
	case PTD_MARK_STOP:
	case PTD_MARK_OUT_OF_SCOPE:
		return count_unknown(branches);
	case PTD_MARK_TSX:
		return mark->value == PTD_TSX_ABORT ? count_unknown(branches) : 0;
	default:
		return 0;
	}
}

static int take_run(struct branches *branches, const struct ptd_run *run)
{
	const struct ptd_block *block = run->block;
	int r = 0;

	if (branches->is_pending)
		r = count_branch(branches, ptd_run_ip(run, 0), run);
	if ((size_t)run->first + run->n == block->n_insns &&
	    is_counted(block->insns[block->n_insns - 1u].iclass)) {
		branches->pending = *run;
		branches->is_pending = true;
	}
	return r;
}

static int branches_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct branches *branches = state;
	size_t m = 0;
	int r = 0;

	branches->symbols = batch->symbols;
	branches->n_symbols = batch->n_symbols;
	if (branches->slice != batch->slice->id)
		r = count_unknown(branches);
	branches->slice = batch->slice->id;
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		while (r == 0 && m < batch->n_marks && batch->marks[m].run == i)
			r = take_mark(branches, &batch->marks[m++]);
		if (r == 0 && i < batch->n_runs)
			r = take_run(branches, &batch->runs[i]);
	}
	return r;
}

/* --- the rows --------------------------------------------------------------------------------- */

static int compare_places(const struct place *a, const struct place *b)
{
	return COMPARE(a->object->id, b->object->id) ?: COMPARE(a->address, b->address);
}

/* Blocks that overlap end with the same branch. */
static int by_place(const void *pa, const void *pb)
{
	const struct branch *a = pa, *b = pb;

	return compare_places(&a->place, &b->place);
}

static int by_count(const void *pa, const void *pb)
{
	const struct branch *a = pa, *b = pb;

	return COMPARE(b->n, a->n) ?: by_place(a, b);
}

static int by_target_count(const void *pa, const void *pb)
{
	const struct target *a = pa, *b = pb;

	return COMPARE(b->n, a->n) ?: compare_places(&a->place, &b->place);
}

/* Add the counts of @from, whose targets are freed. */
static int merge(struct branch *to, struct branch *from)
{
	int r = 0;

	to->n += from->n;
	to->n_taken += from->n_taken;
	to->n_not_taken += from->n_not_taken;
	to->n_unknown += from->n_unknown;
	to->n_others += from->n_others;
	if (!to->taken.object)
		to->taken = from->taken;
	for (size_t i = 0; i < from->targets.n && r == 0; i++)
		r = add_target(to, &from->targets.items[i].place, from->targets.items[i].n);
	vec_deinit(&from->targets);
	return r;
}

/* Bring each branch into one row, the most executed first. */
static int make_rows(struct branches *branches)
{
	struct branch *rows = branches->by_block.items;
	size_t n_used = 0, n = 0;
	int r = 0;

	for (size_t i = 0; i < branches->by_block.n; i++)
		if (rows[i].n > 0)
			rows[n_used++] = rows[i];
	branches->by_block.n = n_used;
	if (n_used == 0)
		return 0;
	vec_sort(&branches->by_block, by_place);
	for (size_t i = 1; i < n_used && r == 0; i++) {
		if (same_place(&rows[n].place, &rows[i].place)) {
			r = merge(&rows[n], &rows[i]);
			continue;
		}
		if (++n < i) {
			rows[n] = rows[i];
			rows[i].targets.items = NULL;
		}
	}
	if (r < 0)
		return r;
	branches->by_block.n = n + 1;
	vec_sort(&branches->by_block, by_count);
	for (size_t i = 0; i <= n; i++)
		vec_sort(&rows[i].targets, by_target_count);
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
					  const struct place *place)
{
	return place->symbol != PTD_NO_SYMBOL && place->symbol < branches->n_symbols
		   ? branches->symbols[place->symbol]
		   : NULL;
}

static void put_place(const struct branches *branches, const struct place *place,
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
		    const char *name, const struct place *place, struct output *output)
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
		const struct target *target = &branch->targets.items[i];

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
	const size_t n_rows = branches->by_block.n;
	uint64_t n = 0, n_rest = 0;

	for (size_t i = 0; i < n_rows; i++)
		n += branches->by_block.items[i].n;
	output_printf(output,
		      "Branches: %zu, conditional or indirect\nExecuted: %" PRIu64
		      "\n\n%20s %7s  kind  branch, and the ways it went, each with its part\n",
		      n_rows, n, "executed", "%");
	for (size_t i = 0; i < n_rows; i++) {
		const struct branch *branch = &branches->by_block.items[i];

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
			   const struct place *place)
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
	for (size_t i = 0; i < branches->by_block.n; i++)
		put_json_branch(branches, json, &branches->by_block.items[i]);
	json_close(json);
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static int branches_open(void *state, const struct sink_config *config, struct output *output)
{
	((struct branches *)state)->n_rows = config->n_rows;
	return 0;
}

static int branches_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	const int r = count_unknown(state);

	return r < 0 ? r : make_rows(state);
}

static void branches_close(void *state)
{
	struct branches *branches = state;

	vec_deinit_each(&branches->by_block, branch, vec_deinit(&branch->targets));
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
