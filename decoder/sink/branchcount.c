/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/branchcount.h"

#include <errno.h>

#include "decoder/x86/insn.h"

#define TARGETS_MAX 64 /* of one indirect branch of a block; further ones are counted as one */

/* --- counting --------------------------------------------------------------------------------- */

static bool is_counted(uint8_t iclass)
{
	return iclass == PTD_INSN_JUMP_COND || iclass == PTD_INSN_JUMP_INDIRECT ||
	       iclass == PTD_INSN_CALL_INDIRECT;
}

static struct branch_place place_of(const struct ptd_block *block, size_t insn)
{
	return (struct branch_place){ block->object, block->address + block->insns[insn].offset,
				      block->insns[insn].symbol };
}

/* Return: the branch at the end of the block, valid until the next call; NULL: no memory. */
static struct branch *get_branch(struct branchcount *count, const struct ptd_block *block)
{
	struct branch *branch = vec_at(&count->rows, block->id, {});

	if (branch && branch->n == 0) {
		branch->place = place_of(block, block->n_insns - 1u);
		branch->iclass = block->insns[block->n_insns - 1u].iclass;
	}
	return branch;
}

static int same_place(const struct branch_place *a, const struct branch_place *b)
{
	return a->object == b->object && a->address == b->address;
}

/* Count @n executions that led to @place, the first one behind @at runs. Return: 0 or -ENOMEM. */
static int add_target(struct branch *branch, const struct branch_place *place, uint64_t n,
		      uint64_t at)
{
	for (size_t k = 0; k < branch->targets.n; k++) {
		const size_t i = (branch->last + k) % branch->targets.n;

		if (!same_place(&branch->targets.items[i].place, place))
			continue;
		branch->targets.items[i].n += n;
		if (at < branch->targets.items[i].at)
			branch->targets.items[i].at = at;
		branch->last = i;
		return 0;
	}
	if (branch->targets.n == TARGETS_MAX) {
		branch->n_others += n;
		return 0;
	}
	return vec_push(&branch->targets, { *place, n, at });
}

/*
 * Count the branch of the pending run, behind which the thread went on at @ip, in @next if that is
 * not NULL, run @i of the batch. Return: 0 or -ENOMEM.
 */
static int count_branch(struct branchcount *count, uint64_t ip, const struct ptd_run *next,
			size_t i)
{
	const struct ptd_run *run = &count->pending;
	const struct ptd_block *block = run->block;
	const struct ptd_insn *last = &block->insns[block->n_insns - 1];
	struct branch *branch = get_branch(count, block);
	struct branch_place place;

	if (!branch)
		return -ENOMEM;
	count->is_pending = false;
	branch->n++;
	if (branch->iclass == PTD_INSN_JUMP_COND) {
		if (ip == insn_wrap(block->mode, run->base + block->size)) {
			if (branch->n_not_taken++ == 0)
				branch->not_taken_at = count->n_runs + i;
		} else if (ip == insn_target(block->mode, block->bytes + last->offset, last->size,
					     run->base + (uint64_t)block->target)) {
			if (branch->n_taken++ == 0)
				branch->taken_at = count->n_runs + i;
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
	return add_target(branch, &place, 1, count->n_runs + i);
}

static int count_unknown(struct branchcount *count)
{
	struct branch *branch;

	if (!count->is_pending)
		return 0;
	branch = get_branch(count, count->pending.block);
	if (!branch)
		return -ENOMEM;
	count->is_pending = false;
	branch->n++;
	branch->n_unknown++;
	return 0;
}

/* A mark may stand between a branch and where it led to. */
static int take_mark(struct branchcount *count, const struct ptd_mark *mark)
{
	switch (mark->kind) {
	case PTD_MARK_ASYNC:
		if (count->is_pending && mark->ip &&
		    count->pending.block->insns[count->pending.block->n_insns - 1u].iclass ==
			PTD_INSN_JUMP_COND)
			return count_branch(count, mark->ip, NULL, mark->run);
		return count_unknown(count);
	case PTD_MARK_GAP:
	case PTD_MARK_OFF:
	case PTD_MARK_STOP:
	case PTD_MARK_OUT_OF_SCOPE:
		return count_unknown(count);
	case PTD_MARK_TSX:
		return mark->value == PTD_TSX_ABORT ? count_unknown(count) : 0;
	default:
		return 0;
	}
}

/* Run @i of the batch comes next. */
static int take_run(struct branchcount *count, const struct ptd_run *run, size_t i)
{
	const struct ptd_block *block = run->block;
	int r = 0;

	if (count->is_pending)
		r = count_branch(count, ptd_run_ip(run, 0), run, i);
	if ((size_t)run->first + run->n == block->n_insns &&
	    is_counted(block->insns[block->n_insns - 1u].iclass)) {
		count->pending = *run;
		count->is_pending = true;
	}
	return r;
}

int branchcount_batch(struct branchcount *count, const struct ptd_batch *batch)
{
	size_t m = 0;
	int r = 0;

	if (count->slice != batch->slice->id)
		r = count_unknown(count);
	count->slice = batch->slice->id;
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		while (r == 0 && m < batch->n_marks && batch->marks[m].run == i)
			r = take_mark(count, &batch->marks[m++]);
		if (r == 0 && i < batch->n_runs)
			r = take_run(count, &batch->runs[i], i);
	}
	count->n_runs += batch->n_runs;
	return r;
}

/* --- the rows --------------------------------------------------------------------------------- */

int branch_place_compare(const struct branch_place *a, const struct branch_place *b)
{
	return COMPARE(a->object->id, b->object->id) ?: COMPARE(a->address, b->address);
}

/* Blocks that overlap end with the same branch. */
static int by_place(const void *pa, const void *pb)
{
	const struct branch *a = pa, *b = pb;

	return branch_place_compare(&a->place, &b->place);
}

/* The first of two times, of which each counts only if there were some. */
static uint64_t earlier(uint64_t n_a, uint64_t a, uint64_t n_b, uint64_t b)
{
	return n_b == 0 || (n_a > 0 && a < b) ? a : b;
}

/* Add the counts of @from, whose targets are freed. */
static int merge(struct branch *to, struct branch *from)
{
	int r = 0;

	to->taken_at = earlier(to->n_taken, to->taken_at, from->n_taken, from->taken_at);
	to->not_taken_at =
	    earlier(to->n_not_taken, to->not_taken_at, from->n_not_taken, from->not_taken_at);
	to->n += from->n;
	to->n_taken += from->n_taken;
	to->n_not_taken += from->n_not_taken;
	to->n_unknown += from->n_unknown;
	to->n_others += from->n_others;
	if (!to->taken.object)
		to->taken = from->taken;
	for (size_t i = 0; i < from->targets.n && r == 0; i++)
		r = add_target(to, &from->targets.items[i].place, from->targets.items[i].n,
			       from->targets.items[i].at);
	vec_deinit(&from->targets);
	return r;
}

int branchcount_end(struct branchcount *count)
{
	size_t n_used = 0, n = 0;
	int r = count_unknown(count);
	struct branch *rows = count->rows.items;

	for (size_t i = 0; i < count->rows.n; i++)
		if (rows[i].n > 0)
			rows[n_used++] = rows[i];
	count->rows.n = n_used;
	if (n_used == 0)
		return r;
	vec_sort(&count->rows, by_place);
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
	if (r == 0)
		count->rows.n = n + 1;
	return r;
}

void branchcount_deinit(struct branchcount *count)
{
	vec_deinit_each(&count->rows, branch, vec_deinit(&branch->targets));
}
