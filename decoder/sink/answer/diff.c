/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/diff.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/answer/diff_state.h"
#include "decoder/sink/answer/executions.h"
#include "decoder/sink/answer/profile.h"
#include "decoder/sink/output.h"
#include "ptd/decode.h"

#define WINDOW     16384u /* steps between two notes of the hash */
#define KEPT       4u     /* windows in which it is looked for where the paths go on alike */
#define SHOWN_MAX  16u    /* pairs of threads whose difference is looked at */
#define NAME_SHOWN 200    /* bytes of a name; longer names are cut */

/* --- the region ------------------------------------------------------------------------------- */

/* Begin at the start of a stream. Return: 0 or -ENOMEM. */
static int region_init(struct region *region, const struct ptd_info *info, const char *function,
		       uint64_t number)
{
	*region = (struct region){ .function = function, .number = number };
	return ptd_calls_new(info, &region->calls);
}

static void region_deinit(struct region *region)
{
	vec_deinit(&region->open);
	ptd_calls_free(region->calls);
	*region = (struct region){};
}

/* Return: the outermost call of the function on the stack; NULL: no memory. */
static struct region_call *open_on(struct region *region, uint32_t stack)
{
	return vec_at(&region->open, stack, {});
}

static void begin_region(struct region *region, const struct ptd_slice *slice,
			 const struct ptd_call *call, struct region_part *part)
{
	region->is_inside = true;
	region->stack = call->stack;
	region->pid = slice->pid;
	region->tid = slice->tid;
	part->begins = true;
	part->from = call->run;
}

static void end_region(struct region *region, const struct ptd_call *call, struct region_part *part)
{
	region->is_inside = false;
	region->is_over = true;
	part->to = call->run;
}

/* The function is entered or left. Return: 0 or -ENOMEM. */
static int take_execution(struct region *region, const struct ptd_slice *slice,
			  const struct ptd_call *call, struct region_part *part)
{
	struct region_call *open = open_on(region, call->stack);

	if (!open)
		return -ENOMEM;
	if (call->kind == PTD_CALL_LEAVE && open->is_open && open->depth == call->depth) {
		open->is_open = false;
		if (region->is_inside && region->stack == call->stack)
			end_region(region, call, part);
	} else if (call->kind == PTD_CALL_ENTER && !open->is_open) {
		*open = (struct region_call){ true, call->depth };
		if (!profile_goes_on(call->how) && ++region->n_begun == region->number)
			begin_region(region, slice, call, part);
	}
	return 0;
}

/* What is moved to another stack is not followed there. */
static void take_move(struct region *region, const struct ptd_call *call, struct region_part *part)
{
	struct region_call *open;

	if (call->n_moved == 0 || call->stack >= region->open.n)
		return;
	open = &region->open.items[call->stack];
	if (!open->is_open || open->depth <= call->depth)
		return;
	open->is_open = false;
	if (region->is_inside && region->stack == call->stack)
		end_region(region, call, part);
}

/* Take the next batch. Return: 0 and the part of it that is in the region; or -ENOMEM. */
static int region_batch(struct region *region, const struct ptd_batch *batch,
			struct region_part *ret_part)
{
	const bool is_inside = region->is_inside && region->pid == batch->slice->pid &&
			       region->tid == batch->slice->tid;
	struct region_part part = { .from = is_inside ? 0 : batch->n_runs, .to = batch->n_runs };
	const struct ptd_call_batch *found;
	int r;

	r = ptd_calls_batch(region->calls, batch);
	while (r == 0 && (r = ptd_calls_next(region->calls, &found)) == 0)
		for (size_t i = 0; r == 0 && i < found->n_calls; i++) {
			const struct ptd_call *call = &found->calls[i];

			if (call->kind == PTD_CALL_SWITCH)
				take_move(region, call, &part);
			else if (executions_name_is(call->function->name, region->function))
				r = take_execution(region, batch->slice, call, &part);
		}
	if (r != PTD_END)
		return r;
	if (part.to < part.from)
		part.to = part.from;
	*ret_part = part;
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

int diff_new(const struct diff_subject *subject, struct diff **ret_diff)
{
	struct diff *diff = calloc(1, sizeof(*diff));

	if (!diff)
		return -ENOMEM;
	diff->subject = *subject;
	*ret_diff = diff;
	return 0;
}

/* Free what belongs to a pass. */
static void leave_pass(struct diff *diff)
{
	path_places_deinit(&diff->places);
	tally_deinit(&diff->tally);
	diff->tally = (struct tally){};
	vec_deinit(&diff->sums);
	vec_deinit(&diff->entries);
	vec_deinit(&diff->fed_runs);
	vec_deinit(&diff->fed_marks);
	region_deinit(&diff->region);
	diff->calls = ptd_calls_free(diff->calls);
}

static void forget_frames(struct diff_sight *sight)
{
	while (sight->n_frames > 0)
		free(sight->frames[--sight->n_frames]);
}

static void stream_deinit(struct diff_stream *stream)
{
	vec_deinit_each(&stream->tracks, track, {
		vec_deinit(&(*track)->notes);
		free(*track);
	});
	map_deinit(&stream->index);
}

struct diff *diff_free(struct diff *diff)
{
	if (!diff)
		return NULL;
	leave_pass(diff);
	for (size_t i = 0; i < _DIFF_SIDES; i++)
		stream_deinit(&diff->streams[i]);
	vec_deinit_each(&diff->functions, function, {
		free(function->name);
		free(function->object);
	});
	map_deinit(&diff->function_index);
	vec_deinit_each(&diff->differences, difference, {
		for (size_t i = 0; i < _DIFF_SIDES; i++) {
			vec_deinit(&(*difference)->steps[i].list);
			forget_frames(&(*difference)->sights[i]);
		}
		free(*difference);
	});
	free(diff);
	return NULL;
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Find the thread of the slice, which is made in the first pass. Return: 0; -ENOENT; -ENOMEM. */
static int get_track(struct diff *diff, const struct ptd_slice *slice,
		     struct diff_track **ret_track)
{
	const uint32_t ids[] = { slice->pid, slice->tid, slice->space };
	struct diff_stream *stream = &diff->streams[diff->side];
	const uint64_t key = map_hash(ids, sizeof(ids));
	const uint64_t *index = map_get(&stream->index, key);
	_cleanup_(freep) struct diff_track *track = NULL;

	if (index) {
		*ret_track = stream->tracks.items[*index];
		return 0;
	}
	if (diff->pass > 0 || stream->tracks.n == DIFF_THREADS_MAX)
		return -ENOENT;
	track = calloc(1, sizeof(*track));
	if (!track || vec_push(&stream->tracks, track) < 0)
		return -ENOMEM;
	*track = (struct diff_track){ .pid = slice->pid, .tid = slice->tid, .space = slice->space };
	*ret_track = TAKE(track);
	return map_put(&stream->index, key, stream->tracks.n - 1);
}

static bool have_same_name(const struct diff_track *a, const struct diff_track *b)
{
	return strcmp(a->comm, b->comm) == 0;
}

/* Pair the threads that have no partner yet. */
static void pair_tracks(struct diff *diff, bool by_name)
{
	const struct diff_stream *a = &diff->streams[DIFF_A], *b = &diff->streams[DIFF_B];

	for (size_t i = 0; i < a->tracks.n; i++) {
		struct diff_track *t = a->tracks.items[i];

		for (size_t j = 0; j < b->tracks.n && !t->other; j++) {
			struct diff_track *u = b->tracks.items[j];

			if (u->other || (by_name && !have_same_name(t, u)))
				continue;
			t->other = u;
			u->other = t;
		}
	}
}

/* --- pass 0 ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const struct path_step *step)
{
	const uint64_t x = step->from * UINT64_C(0x9e3779b97f4a7c15) ^
			   (step->to + step->kind) * UINT64_C(0xc2b2ae3d27d4eb4f);

	return (hash << 23 | hash >> 41) * UINT64_C(0x165667b19e3779f9) ^ x ^ x >> 29;
}

static int note_step(struct diff_track *track, const struct path_step *step)
{
	track->hash = mix(track->hash, step);
	if (++track->n_steps % WINDOW == 0)
		return vec_push(&track->notes, track->hash);
	return 0;
}

/* Count that a branch led to the first instruction of the run. */
static int note_entry(struct diff *diff, const struct ptd_batch *batch, const struct ptd_run *run)
{
	const struct ptd_insn *insn = &run->block->insns[run->first];
	const uint32_t id = insn->symbol;
	struct diff_entry *entry;

	if (id == PTD_NO_SYMBOL || id >= batch->n_symbols ||
	    batch->symbols[id]->address != run->block->address + insn->offset)
		return 0;
	entry = vec_at(&diff->entries, id, {});
	if (!entry)
		return -ENOMEM;
	entry->object = run->block->object;
	entry->n++;
	return 0;
}

static int count_insns(struct diff *diff, const struct ptd_batch *batch,
		       const struct region_part *part)
{
	const size_t n_runs = part->to - part->from;
	size_t n;
	int r;

	diff->sums.n = 0;
	r = vec_reserve(&diff->sums, n_runs);
	if (r < 0)
		return r;
	n = tally_sum(batch->runs + part->from, n_runs, &diff->tally_index, diff->sums.items);
	return tally_add(&diff->tally, batch, diff->sums.items, n);
}

/* --- pass 1 ----------------------------------------------------------------------------------- */

/* Keep the step if it is in the part that is looked for. */
static int keep_step(struct diff *diff, struct diff_track *track, const struct path_step *step)
{
	struct diff_difference *d = track->difference;
	const uint64_t i = track->n_steps++;
	int r;

	if (i / WINDOW < d->window || i / WINDOW >= d->window + KEPT)
		return 0;
	r = vec_push(&d->steps[diff->side].list, *step);
	if (r == 0 && (track->n_steps == (d->window + KEPT) * WINDOW || step->kind == PATH_END))
		diff->n_wanted--;
	return r;
}

/* Find the first steps that differ, and where the paths go on alike. Return: 0 or -ENOMEM. */
static int compare_steps(struct diff_difference *d)
{
	const struct path_step *a = d->steps[DIFF_A].list.items, *b = d->steps[DIFF_B].list.items;
	const struct rejoin_path paths[] = { { a, d->steps[DIFF_A].list.n },
					     { b, d->steps[DIFF_B].list.n } };
	size_t i = 0;
	int r;

	while (i < paths[0].n && i < paths[1].n && a[i].kind == b[i].kind &&
	       a[i].from == b[i].from && a[i].to == b[i].to)
		i++;
	if (i == paths[0].n || i == paths[1].n)
		return 0;
	d->is_found = true;
	d->step[DIFF_A] = a[i];
	d->step[DIFF_B] = b[i];
	d->n_insns = a[i].n_insns < b[i].n_insns ? a[i].n_insns : b[i].n_insns;
	r = rejoin_find(paths, i, &d->rejoin);
	vec_deinit(&d->steps[DIFF_A].list);
	vec_deinit(&d->steps[DIFF_B].list);
	return r;
}

/* --- pass 2 ----------------------------------------------------------------------------------- */

static void name_place(const struct ptd_batch *batch, const struct ptd_run *run, size_t insn,
		       char ret_text[static DIFF_PLACE_SIZE])
{
	const struct ptd_block *block = run->block;
	const uint32_t id = block->insns[insn].symbol;
	char name[NAME_SHOWN + 1] = "[unknown]", object[NAME_SHOWN + 1], offset[24] = "";

	if (id != PTD_NO_SYMBOL && id < batch->n_symbols) {
		const struct ptd_symbol *symbol = batch->symbols[id];

		name[output_printable(name, symbol->name, NAME_SHOWN)] = '\0';
		(void)snprintf(offset, sizeof(offset), "+0x%" PRIx64,
			       block->address + block->insns[insn].offset - symbol->address);
	}
	object[output_printable(object, block->object->name, NAME_SHOWN)] = '\0';
	(void)snprintf(ret_text, DIFF_PLACE_SIZE, "%" PRIx64 " %s%s (%s)",
		       run->base + block->insns[insn].offset, name, offset, object);
}

/*
 * Have the call layer take what is left of the batch before the instruction @n_insns of the run
 * @n_runs. The calls themselves do not matter.
 *
 * Return: 0 or -ENOMEM.
 */
static int feed_calls(struct diff *diff, const struct ptd_batch *batch, size_t n_runs,
		      size_t n_insns)
{
	const struct ptd_call_batch *found;
	struct ptd_batch part = *batch;
	int r = 0;

	diff->fed_runs.n = diff->fed_marks.n = 0;
	for (size_t i = diff->n_fed_runs; r == 0 && i < n_runs + (n_insns > 0); i++) {
		struct ptd_run run = batch->runs[i];

		if (i == n_runs)
			run.n = (uint16_t)n_insns;
		if (i == diff->n_fed_runs) {
			run.first = (uint16_t)(run.first + diff->n_fed_insns);
			run.n = (uint16_t)(run.n - diff->n_fed_insns);
		}
		r = vec_push(&diff->fed_runs, run);
	}
	while (r == 0 && diff->n_fed_marks < batch->n_marks &&
	       batch->marks[diff->n_fed_marks].run <= n_runs) {
		struct ptd_mark mark = batch->marks[diff->n_fed_marks++];

		mark.run -= mark.run < diff->n_fed_runs ? mark.run : diff->n_fed_runs;
		r = vec_push(&diff->fed_marks, mark);
	}
	part.runs = diff->fed_runs.items;
	part.n_runs = diff->fed_runs.n;
	part.marks = diff->fed_marks.items;
	part.n_marks = diff->fed_marks.n;
	diff->n_fed_runs = n_runs;
	diff->n_fed_insns = n_insns;
	/* Nothing is left of a run that was taken to its end, and marks must not count it. */
	if (n_insns > 0 && n_insns == batch->runs[n_runs].n) {
		diff->n_fed_runs++;
		diff->n_fed_insns = 0;
	}
	if (r == 0)
		r = ptd_calls_batch(diff->calls, &part);
	while (r == 0)
		r = ptd_calls_next(diff->calls, &found);
	return r == PTD_END ? 0 : r;
}

/* Keep the names of the functions that are open in the thread of the batch. */
static int see_frames(struct diff *diff, struct diff_sight *sight, const struct ptd_batch *batch)
{
	const struct ptd_call_thread *const *threads;
	const struct ptd_frame *frames = NULL;
	size_t n_threads, n = 0;
	int r = 0;

	threads = ptd_calls_threads(diff->calls, &n_threads);
	for (size_t i = 0; r == 0 && i < n_threads; i++)
		if (threads[i]->pid == batch->slice->pid && threads[i]->tid == batch->slice->tid &&
		    threads[i]->space == batch->slice->space && !threads[i]->ended)
			r = ptd_calls_stack(diff->calls, threads[i]->id, &frames, &n);
	sight->n_open = n;
	for (size_t i = 0; r == 0 && i < n && i < DIFF_FRAMES_MAX; i++) {
		sight->frames[i] = strdup(frames[i].function->name);
		if (!sight->frames[i])
			return -ENOMEM;
		sight->n_frames = i + 1;
	}
	return r;
}

/*
 * The last common instruction is the one with the index @i in the block of the run with the index
 * @index.
 */
static int see_last(struct diff *diff, struct diff_sight *sight, const struct ptd_batch *batch,
		    size_t index, size_t i)
{
	const struct ptd_run *run = &batch->runs[index];
	const struct ptd_block *block = run->block;
	const struct ptd_insn *insn = &block->insns[i];
	int r = 0;

	sight->is_seen = true;
	sight->t = run->t;
	sight->ip = run->base + insn->offset;
	(void)text_format(block->mode, sight->ip, block->bytes + insn->offset, insn->size,
			  sight->insn);
	name_place(batch, run, i, sight->at);
	/* Both have the same path to here, and so the same functions. */
	if (diff->side == DIFF_A)
		r = feed_calls(diff, batch, index, i + 1 - run->first)
			?: see_frames(diff, sight, batch);
	return r;
}

/* Look at a run before the path takes it. Return: 0 or -ENOMEM. */
static int look_at(struct diff *diff, const struct diff_track *track, const struct ptd_batch *batch,
		   size_t index)
{
	const struct ptd_run *run = &batch->runs[index];
	struct diff_difference *d = track->difference;
	struct diff_sight *sight = &d->sights[diff->side];
	uint64_t n = track->path.n_insns;
	int r;

	if (!d->is_found || sight->next[0])
		return 0;
	if (n < d->n_insns && d->n_insns <= n + run->n) {
		n = d->n_insns - n;
		r = see_last(diff, sight, batch, index, run->first + (size_t)n - 1);
		if (r < 0 || n == run->n)
			return r;
		name_place(batch, run, run->first + (size_t)n, sight->next);
	} else if (n == d->n_insns) {
		sight->is_seen = true;
		if (!sight->insn[0])
			sight->t = run->t;
		name_place(batch, run, run->first, sight->next);
	}
	if (sight->next[0])
		diff->n_wanted--;
	return 0;
}

/* --- batches ---------------------------------------------------------------------------------- */

static int take_step(struct diff *diff, struct diff_track *track, const struct path_step *step)
{
	if (diff->pass == 0)
		return note_step(track, step);
	return diff->pass == 1 ? keep_step(diff, track, step) : 0;
}

static int take_run(struct diff *diff, struct diff_track *track, const struct ptd_batch *batch,
		    size_t index)
{
	const struct ptd_run *run = &batch->runs[index];
	struct path_step step;
	int r = 0;

	if (diff->pass == 2)
		r = look_at(diff, track, batch, index);
	if (r == 0)
		r = path_run(&track->path, &diff->places, batch, run, &step);
	if (r != PATH_STEP)
		return r;
	r = take_step(diff, track, &step);
	if (r == 0 && diff->pass == 0 && step.kind == PATH_BRANCH)
		r = note_entry(diff, batch, run);
	return r;
}

static void take_name(struct diff_track *track, const struct ptd_slice *slice)
{
	if (slice->comm && slice->comm[0])
		track->comm[output_printable(track->comm, slice->comm, sizeof(track->comm) - 1)] =
		    '\0';
}

static int take_part(struct diff *diff, const struct ptd_batch *batch,
		     const struct region_part *part)
{
	struct diff_track *track;
	size_t m = 0;
	int r;

	r = get_track(diff, batch->slice, &track);
	if (r == -ENOENT) {
		diff->streams[diff->side].n_left_out += diff->pass == 0;
		return 0;
	}
	if (r < 0 || (diff->pass > 0 && !track->difference))
		return r;
	if (diff->pass == 0) {
		take_name(track, batch->slice);
		r = count_insns(diff, batch, part);
	}
	while (m < batch->n_marks && batch->marks[m].run < part->from + part->begins)
		m++;
	for (size_t i = part->from; i <= part->to && r == 0; i++) {
		for (; m < batch->n_marks && batch->marks[m].run == i; m++)
			if (i < part->to || i == batch->n_runs)
				path_mark(&track->path, &batch->marks[m]);
		if (i < part->to)
			r = take_run(diff, track, batch, i);
	}
	return r;
}

/* Have a pass that wants to see which functions were open see the batch. */
static int follow_calls(struct diff *diff, const struct ptd_batch *batch,
			const struct region_part *part)
{
	int r = 0;

	diff->n_fed_runs = diff->n_fed_insns = diff->n_fed_marks = 0;
	if (part->from < part->to || (part->from == 0 && !diff->subject.function))
		r = take_part(diff, batch, part);
	return r == 0 && diff->calls ? feed_calls(diff, batch, batch->n_runs, 0) : r;
}

int diff_batch(struct diff *diff, const struct ptd_batch *batch)
{
	struct region_part part = { .to = batch->n_runs };
	int r = 0;

	if (diff->region.is_over)
		return DIFF_ENOUGH;
	if (diff->subject.function)
		r = region_batch(&diff->region, batch, &part);
	if (r == 0)
		r = follow_calls(diff, batch, &part);
	return r == 0 && diff->pass > 0 && diff->n_wanted == 0 ? DIFF_ENOUGH : r;
}

/* --- functions -------------------------------------------------------------------------------- */

static int get_function(struct diff *diff, const char *name, const char *object,
			struct diff_function **ret_function)
{
	const char *base = basename(object);
	uint64_t key, index;
	int r;

	key = map_hash(base, strlen(base)) * 31 + (name ? map_hash(name, strlen(name)) : 0);
	r = map_number(&diff->function_index, key, diff->functions.n, &index);
	if (r > 0) {
		struct diff_function f = { .name = name ? strdup(name) : NULL,
					   .object = strdup(base) };

		r = f.object && (f.name || !name) ? vec_push(&diff->functions, f) : -ENOMEM;
		if (r < 0) {
			free(f.name);
			free(f.object);
		}
	}
	if (r < 0)
		return r;
	*ret_function = &diff->functions.items[index];
	return 0;
}

/* Keep what was counted, before the decoder with its names is freed. */
static int keep_counts(struct diff *diff)
{
	struct tally_rows rows = {};
	struct diff_function *f;
	int r;

	r = tally_list(&diff->tally, TALLY_SYMBOLS, &rows);
	for (size_t i = 0; r == 0 && i < rows.n; i++) {
		r = get_function(diff, rows.items[i].name, rows.items[i].object, &f);
		if (r == 0)
			f->n_insns[diff->side] += rows.items[i].n_insns;
	}
	for (size_t i = 0; r == 0 && i < diff->entries.n; i++) {
		const struct diff_entry *e = &diff->entries.items[i];

		if (e->n == 0)
			continue;
		r = get_function(diff, diff->tally.symbols.items[i], e->object->name, &f);
		if (r == 0)
			f->n_entered[diff->side] += e->n;
	}
	vec_deinit(&rows);
	diff->streams[diff->side].n_insns = diff->tally.n_insns;
	diff->streams[diff->side].n_executions = diff->region.n_begun;
	return r;
}

/* --- passes ----------------------------------------------------------------------------------- */

enum ptd_clock diff_clock(const struct diff *diff)
{
	return diff->streams[DIFF_A].clock;
}

bool diff_needs(const struct diff *diff, unsigned int pass)
{
	return pass == 0 || diff->differences.n > 0;
}

int diff_begin(struct diff *diff, unsigned int pass, enum diff_side side,
	       const struct ptd_info *info)
{
	struct diff_stream *stream = &diff->streams[side];
	int r = 0;

	assert(pass < DIFF_PASSES && side < _DIFF_SIDES);
	leave_pass(diff);
	diff->pass = pass;
	diff->side = side;
	diff->n_wanted = diff->differences.n;
	stream->clock = info->clock;
	for (size_t i = 0; i < stream->tracks.n; i++) {
		stream->tracks.items[i]->path = (struct path){};
		stream->tracks.items[i]->n_steps = 0;
	}
	if (diff->subject.function)
		r = region_init(&diff->region, info, diff->subject.function,
				diff->subject.numbers[side]);
	if (r == 0 && pass == 2 && side == DIFF_A)
		r = ptd_calls_new(info, &diff->calls);
	return r;
}

/* The path is over: that is its last step. */
static int end_path(struct diff *diff, struct diff_track *track)
{
	struct path_step end = { .kind = PATH_END, .n_insns = track->path.n_insns };
	int r;

	if (diff->pass == 0)
		track->n_insns = track->path.n_insns;
	r = take_step(diff, track, &end);
	if (r == 0 && diff->pass == 0)
		r = vec_push(&track->notes, track->hash);
	return r;
}

/* If the threads differ, make a note to find out where. */
static int compare_notes(struct diff *diff, struct diff_track *a, struct diff_track *b)
{
	const size_t n = a->notes.n < b->notes.n ? a->notes.n : b->notes.n;
	struct diff_difference *d;
	size_t i = 0;
	int r;

	while (i < n && a->notes.items[i] == b->notes.items[i])
		i++;
	if (i == a->notes.n && i == b->notes.n)
		return 0;
	if (diff->differences.n == SHOWN_MAX) {
		diff->n_unshown++;
		return 0;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	*d = (struct diff_difference){ .tracks = { a, b }, .window = i };
	r = vec_push(&diff->differences, d);
	if (r < 0)
		free(d);
	else
		a->difference = b->difference = d;
	return r;
}

/* Both streams were seen: prepare the next pass. */
static int compare_streams(struct diff *diff)
{
	const struct diff_stream *a = &diff->streams[DIFF_A];
	int r = 0;

	if (diff->pass == 0) {
		pair_tracks(diff, true);
		pair_tracks(diff, false);
		for (size_t i = 0; r == 0 && i < a->tracks.n; i++)
			if (a->tracks.items[i]->other)
				r = compare_notes(diff, a->tracks.items[i],
						  a->tracks.items[i]->other);
	} else if (diff->pass == 1) {
		for (size_t i = 0; r == 0 && i < diff->differences.n; i++)
			r = compare_steps(diff->differences.items[i]);
	}
	return r;
}

int diff_end(struct diff *diff)
{
	struct diff_stream *stream = &diff->streams[diff->side];
	int r = 0;

	for (size_t i = 0; r == 0 && i < stream->tracks.n; i++)
		if (diff->pass == 0 || stream->tracks.items[i]->difference)
			r = end_path(diff, stream->tracks.items[i]);
	if (r == 0 && diff->pass == 0)
		r = keep_counts(diff);
	if (r == 0 && diff->side == DIFF_B)
		r = compare_streams(diff);
	leave_pass(diff);
	return r;
}
