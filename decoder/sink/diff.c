/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/diff.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/option.h"
#include "decoder/sink/output.h"
#include "decoder/sink/path.h"
#include "decoder/sink/tally.h"
#include "decoder/x86/text.h"
#include "util/map.h"

#define WINDOW      16384u /* steps between two notes of the hash */
#define THREADS_MAX 4096u  /* of one stream; others are not compared */
#define SHOWN_MAX   16u    /* pairs of threads whose difference is looked at */
#define ROWS_SHOWN  20u    /* of the functions, unless the user says how many */
#define PLACE_SIZE  512
#define NAME_SHOWN  200 /* bytes of a name; longer names are cut */

/* What a thread did at the end of what both have in common. */
struct sight {
	bool is_seen;
	uint64_t t, ip;        /* of the last common instruction */
	char insn[TEXT_MAX];   /* it, disassembled; "" if there is none */
	char at[PLACE_SIZE];   /* where it is */
	char next[PLACE_SIZE]; /* where the thread went on; "" if it did not */
};

/* A thread, as it executes one program. */
struct track {
	uint32_t pid, tid, space;
	char comm[16]; /* its last name */
	struct path path;
	uint64_t n_steps, n_insns;
	uint64_t hash;
	VEC(uint64_t) notes; /* the hash behind each WINDOW steps, and at the end */

	struct track *other;           /* of the other stream, borrowed; NULL: there is none */
	struct difference *difference; /* borrowed; NULL: none is to be found */
};

/* The first difference of two threads. */
struct difference {
	struct track *tracks[_DIFF_SIDES]; /* borrowed */
	uint64_t window;                   /* the part of the path in which it is */
	struct {
		VEC(struct path_step) list;
	} steps[_DIFF_SIDES]; /* of that part */
	bool is_found;
	uint64_t n_insns;                   /* executed by both in the same way */
	struct path_step step[_DIFF_SIDES]; /* the ones that differ */
	struct sight sights[_DIFF_SIDES];
};

/* A function in both streams. */
struct function {
	char *name;   /* NULL: code without a symbol */
	char *object; /* without its directory */
	uint64_t n_insns[_DIFF_SIDES];
	uint64_t n_entered[_DIFF_SIDES];
};

/* How often branches led to the first instruction of a symbol. */
struct entry {
	uint64_t n;
	const struct ptd_object *object;
};

struct stream {
	const char *name; /* borrowed */
	enum ptd_clock clock;
	VEC(struct track *) tracks; /* in the order of their first instructions; owned */
	struct map index;           /* hash of the ids → index in tracks */
	uint64_t n_insns;
	uint64_t n_left_out; /* batches of threads that are too many */
};

struct diff {
	struct stream streams[_DIFF_SIDES];
	VEC(struct function) functions;
	struct map function_index; /* hash of the names → index in functions */
	VEC(struct difference *) differences;
	size_t n_unshown; /* pairs of threads that differ, beyond SHOWN_MAX */

	/* Of the present pass over one stream. */
	unsigned int pass;
	enum diff_side side;
	struct path_places places;
	struct tally tally;
	struct tally_index tally_index;
	VEC(struct tally_sum) sums;
	VEC(struct entry) entries; /* by symbol id */
	size_t n_wanted; /* differences of which the pass has not seen all that it wants */
};

/* --- its life --------------------------------------------------------------------------------- */

int diff_new(const char *const names[static _DIFF_SIDES], struct diff **ret_diff)
{
	struct diff *diff = calloc(1, sizeof(*diff));

	if (!diff)
		return -ENOMEM;
	for (size_t i = 0; i < _DIFF_SIDES; i++)
		diff->streams[i].name = names[i];
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
}

static void stream_deinit(struct stream *stream)
{
	for (size_t i = 0; i < stream->tracks.n; i++) {
		vec_deinit(&stream->tracks.items[i]->notes);
		free(stream->tracks.items[i]);
	}
	vec_deinit(&stream->tracks);
	map_deinit(&stream->index);
}

struct diff *diff_free(struct diff *diff)
{
	if (!diff)
		return NULL;
	leave_pass(diff);
	for (size_t i = 0; i < _DIFF_SIDES; i++)
		stream_deinit(&diff->streams[i]);
	for (size_t i = 0; i < diff->functions.n; i++) {
		free(diff->functions.items[i].name);
		free(diff->functions.items[i].object);
	}
	vec_deinit(&diff->functions);
	map_deinit(&diff->function_index);
	for (size_t i = 0; i < diff->differences.n; i++) {
		for (size_t j = 0; j < _DIFF_SIDES; j++)
			vec_deinit(&diff->differences.items[i]->steps[j].list);
		free(diff->differences.items[i]);
	}
	vec_deinit(&diff->differences);
	free(diff);
	return NULL;
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Find the thread of the slice, which is made in the first pass. Return: 0; -ENOENT; -ENOMEM. */
static int get_track(struct diff *diff, const struct ptd_slice *slice, struct track **ret_track)
{
	const uint32_t ids[] = { slice->pid, slice->tid, slice->space };
	struct stream *stream = &diff->streams[diff->side];
	const uint64_t key = map_hash(ids, sizeof(ids));
	const uint64_t *index = map_get(&stream->index, key);
	struct track *track;
	int r;

	if (index) {
		*ret_track = stream->tracks.items[*index];
		return 0;
	}
	if (diff->pass > 0 || stream->tracks.n == THREADS_MAX)
		return -ENOENT;
	track = calloc(1, sizeof(*track));
	if (!track)
		return -ENOMEM;
	*track = (struct track){ .pid = slice->pid, .tid = slice->tid, .space = slice->space };
	r = vec_push(&stream->tracks, track);
	if (r < 0) {
		free(track);
		return r;
	}
	*ret_track = track;
	return map_put(&stream->index, key, stream->tracks.n - 1);
}

static bool have_same_name(const struct track *a, const struct track *b)
{
	return strcmp(a->comm, b->comm) == 0;
}

/* Pair the threads that have no partner yet. */
static void pair_tracks(struct diff *diff, bool by_name)
{
	const struct stream *a = &diff->streams[DIFF_A], *b = &diff->streams[DIFF_B];

	for (size_t i = 0; i < a->tracks.n; i++) {
		struct track *t = a->tracks.items[i];

		for (size_t j = 0; j < b->tracks.n && !t->other; j++) {
			struct track *u = b->tracks.items[j];

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

static int note_step(struct track *track, const struct path_step *step)
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
	int r;

	if (id == PTD_NO_SYMBOL || id >= batch->n_symbols ||
	    batch->symbols[id]->address != run->block->address + insn->offset)
		return 0;
	if (id >= diff->entries.n) {
		r = vec_reserve(&diff->entries, batch->n_symbols - diff->entries.n);
		if (r < 0)
			return r;
		while (diff->entries.n < batch->n_symbols)
			diff->entries.items[diff->entries.n++] = (struct entry){};
	}
	diff->entries.items[id].object = run->block->object;
	diff->entries.items[id].n++;
	return 0;
}

static int count_insns(struct diff *diff, const struct ptd_batch *batch)
{
	size_t n;
	int r;

	diff->sums.n = 0;
	r = vec_reserve(&diff->sums, batch->n_runs);
	if (r < 0)
		return r;
	n = tally_sum(batch->runs, batch->n_runs, &diff->tally_index, diff->sums.items);
	return tally_add(&diff->tally, batch, diff->sums.items, n);
}

/* --- pass 1 ----------------------------------------------------------------------------------- */

/* Keep the step if it is in the part that is looked for. */
static int keep_step(struct diff *diff, struct track *track, const struct path_step *step)
{
	struct difference *d = track->difference;
	const uint64_t i = track->n_steps++;
	int r;

	if (i / WINDOW != d->window)
		return 0;
	r = vec_push(&d->steps[diff->side].list, *step);
	if (r == 0 && (track->n_steps % WINDOW == 0 || step->kind == PATH_END))
		diff->n_wanted--;
	return r;
}

/* Find the first steps that differ. */
static void compare_steps(struct difference *d)
{
	const struct path_step *a = d->steps[DIFF_A].list.items, *b = d->steps[DIFF_B].list.items;
	size_t i = 0;

	for (; i < d->steps[DIFF_A].list.n && i < d->steps[DIFF_B].list.n; i++) {
		if (a[i].kind == b[i].kind && a[i].from == b[i].from && a[i].to == b[i].to)
			continue;
		d->is_found = true;
		d->step[DIFF_A] = a[i];
		d->step[DIFF_B] = b[i];
		d->n_insns = a[i].n_insns < b[i].n_insns ? a[i].n_insns : b[i].n_insns;
		return;
	}
}

/* --- pass 2 ----------------------------------------------------------------------------------- */

static void name_place(const struct ptd_batch *batch, const struct ptd_run *run, size_t insn,
		       char ret_text[static PLACE_SIZE])
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
	(void)snprintf(ret_text, PLACE_SIZE, "%" PRIx64 " %s%s (%s)",
		       run->base + block->insns[insn].offset, name, offset, object);
}

/* The last common instruction is the one with this index in the block of the run. */
static void see_last(struct sight *sight, const struct ptd_batch *batch, const struct ptd_run *run,
		     size_t i)
{
	const struct ptd_block *block = run->block;
	const struct ptd_insn *insn = &block->insns[i];

	sight->is_seen = true;
	sight->t = run->t;
	sight->ip = run->base + insn->offset;
	(void)text_format(block->mode, sight->ip, block->bytes + insn->offset, insn->size,
			  sight->insn);
	name_place(batch, run, i, sight->at);
}

/* Look at a run before the path takes it. */
static void look_at(struct diff *diff, const struct track *track, const struct ptd_batch *batch,
		    const struct ptd_run *run)
{
	struct difference *d = track->difference;
	struct sight *sight = &d->sights[diff->side];
	uint64_t n = track->path.n_insns;

	if (!d->is_found || sight->next[0])
		return;
	if (n < d->n_insns && d->n_insns <= n + run->n) {
		see_last(sight, batch, run, run->first + (size_t)(d->n_insns - n) - 1);
		n = d->n_insns - n;
		if (n == run->n)
			return;
		name_place(batch, run, run->first + (size_t)n, sight->next);
	} else if (n == d->n_insns) {
		sight->is_seen = true;
		if (!sight->insn[0])
			sight->t = run->t;
		name_place(batch, run, run->first, sight->next);
	}
	if (sight->next[0])
		diff->n_wanted--;
}

/* --- batches ---------------------------------------------------------------------------------- */

static int take_step(struct diff *diff, struct track *track, const struct path_step *step)
{
	if (diff->pass == 0)
		return note_step(track, step);
	return diff->pass == 1 ? keep_step(diff, track, step) : 0;
}

static int take_run(struct diff *diff, struct track *track, const struct ptd_batch *batch,
		    const struct ptd_run *run)
{
	struct path_step step;
	int r;

	if (diff->pass == 2)
		look_at(diff, track, batch, run);
	r = path_run(&track->path, &diff->places, batch, run, &step);
	if (r != PATH_STEP)
		return r;
	r = take_step(diff, track, &step);
	if (r == 0 && diff->pass == 0 && step.kind == PATH_BRANCH)
		r = note_entry(diff, batch, run);
	return r;
}

static void take_name(struct track *track, const struct ptd_slice *slice)
{
	if (slice->comm && slice->comm[0])
		track->comm[output_printable(track->comm, slice->comm, sizeof(track->comm) - 1)] =
		    '\0';
}

int diff_batch(struct diff *diff, const struct ptd_batch *batch)
{
	struct track *track;
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
		r = count_insns(diff, batch);
	}
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		while (m < batch->n_marks && batch->marks[m].run == i)
			path_mark(&track->path, &batch->marks[m++]);
		if (i < batch->n_runs)
			r = take_run(diff, track, batch, &batch->runs[i]);
	}
	return r == 0 && diff->pass > 0 && diff->n_wanted == 0 ? DIFF_ENOUGH : r;
}

/* --- functions -------------------------------------------------------------------------------- */

static int get_function(struct diff *diff, const char *name, const char *object,
			struct function **ret_function)
{
	const char *base = strrchr(object, '/');
	const uint64_t *index;
	uint64_t key;
	int r;

	base = base ? base + 1 : object;
	key = map_hash(base, strlen(base)) * 31 + (name ? map_hash(name, strlen(name)) : 0);
	index = map_get(&diff->function_index, key);
	if (!index) {
		struct function f = { .name = name ? strdup(name) : NULL, .object = strdup(base) };

		r = f.object && (f.name || !name) ? vec_push(&diff->functions, f) : -ENOMEM;
		if (r < 0) {
			free(f.name);
			free(f.object);
			return r;
		}
		r = map_put(&diff->function_index, key, diff->functions.n - 1);
		if (r < 0)
			return r;
		index = map_get(&diff->function_index, key);
	}
	*ret_function = &diff->functions.items[*index];
	return 0;
}

/* Keep what was counted, before the decoder with its names is freed. */
static int keep_counts(struct diff *diff)
{
	struct tally_rows rows = {};
	struct function *f;
	int r;

	r = tally_symbols(&diff->tally, &rows);
	for (size_t i = 0; r == 0 && i < rows.n; i++) {
		r = get_function(diff, rows.items[i].name, rows.items[i].object, &f);
		if (r == 0)
			f->n_insns[diff->side] += rows.items[i].n_insns;
	}
	for (size_t i = 0; r == 0 && i < diff->entries.n; i++) {
		const struct entry *e = &diff->entries.items[i];

		if (e->n == 0)
			continue;
		r = get_function(diff, diff->tally.symbols.items[i], e->object->name, &f);
		if (r == 0)
			f->n_entered[diff->side] += e->n;
	}
	vec_deinit(&rows);
	diff->streams[diff->side].n_insns = diff->tally.n_insns;
	return r;
}

/* --- passes ----------------------------------------------------------------------------------- */

bool diff_needs(const struct diff *diff, unsigned int pass)
{
	return pass == 0 || diff->differences.n > 0;
}

void diff_begin(struct diff *diff, unsigned int pass, enum diff_side side,
		const struct ptd_info *info)
{
	struct stream *stream = &diff->streams[side];

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
}

/* The path is over: that is its last step. */
static int end_path(struct diff *diff, struct track *track)
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
static int compare_notes(struct diff *diff, struct track *a, struct track *b)
{
	const size_t n = a->notes.n < b->notes.n ? a->notes.n : b->notes.n;
	struct difference *d;
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
	*d = (struct difference){ .tracks = { a, b }, .window = i };
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
	const struct stream *a = &diff->streams[DIFF_A];
	int r = 0;

	if (diff->pass == 0) {
		pair_tracks(diff, true);
		pair_tracks(diff, false);
		for (size_t i = 0; r == 0 && i < a->tracks.n; i++)
			if (a->tracks.items[i]->other)
				r = compare_notes(diff, a->tracks.items[i],
						  a->tracks.items[i]->other);
	} else if (diff->pass == 1) {
		for (size_t i = 0; i < diff->differences.n; i++)
			compare_steps(diff->differences.items[i]);
	}
	return r;
}

int diff_end(struct diff *diff)
{
	struct stream *stream = &diff->streams[diff->side];
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

/* --- its text --------------------------------------------------------------------------------- */

struct sink {
	const struct diff *diff; /* borrowed */
	uint64_t n_rows;
};

#define put ptd_output_printf

static void put_streams(struct ptd_output *output, const struct diff *diff)
{
	char name[NAME_SHOWN + 1];

	for (size_t i = 0; i < _DIFF_SIDES; i++) {
		const struct stream *s = &diff->streams[i];

		name[output_printable(name, s->name, NAME_SHOWN)] = '\0';
		put(output, "%c: %s: %" PRIu64 " instructions, %zu thread%s\n", "AB"[i], name,
		    s -> n_insns, s -> tracks.n, plural(s->tracks.n));
		if (s->n_left_out > 0)
			put(output, "   more than %u threads: the others are left out\n",
			    THREADS_MAX);
	}
}

static void put_thread(struct ptd_output *output, const struct track *track)
{
	char name[NAME_SHOWN + 1];

	name[output_printable(name, track->comm[0] ? track->comm : "?", NAME_SHOWN)] = '\0';
	put(output, "%s %" PRId32 "/%" PRId32, name, (int32_t)track->pid, (int32_t)track->tid);
}

static void put_time(struct ptd_output *output, enum ptd_clock clock, uint64_t t)
{
	if (clock == PTD_CLOCK_NS)
		put(output, " at %" PRIu64 ".%09" PRIu64, t / 1000000000, t % 1000000000);
	else if (clock == PTD_CLOCK_TSC)
		put(output, " at %" PRIu64, t);
}

/* Say what one of the threads did. */
static void put_sight(struct ptd_output *output, const struct diff *diff,
		      const struct difference *d, enum diff_side side)
{
	static const char *const words[_PATH_STEP_KINDS] = {
		[PATH_BRANCH] = "went to",
		[PATH_INTERRUPTED] = "was interrupted, and went on at",
		[PATH_BROKEN] = "has a gap, and goes on at",
		[PATH_END] = "ends",
	};
	const struct sight *sight = &d->sights[side];
	const bool stepped = d->step[side].n_insns == d->n_insns;

	put(output, "    %c", "AB"[side]);
	if (sight->is_seen)
		put_time(output, diff->streams[side].clock, sight->t);
	put(output, " %s", stepped ? words[d->step[side].kind] : "went on with");
	put(output, sight->next[0] ? " %s\n" : "\n", sight->next);
}

static void put_difference(struct ptd_output *output, const struct diff *diff,
			   const struct difference *d)
{
	const struct sight *a = &d->sights[DIFF_A];

	put(output, "\n");
	put_thread(output, d->tracks[DIFF_A]);
	put(output, " of A and ");
	put_thread(output, d->tracks[DIFF_B]);
	if (!d->is_found) {
		put(output, " of B differ, but where was not found: an input has changed\n");
		return;
	}
	put(output, " of B: the first %" PRIu64 " instruction%s are the same\n", d->n_insns,
	    plural(d->n_insns));
	if (a->insn[0])
		put(output, "    Then, behind %s: %s\n", a->at, a->insn);
	for (size_t i = 0; i < _DIFF_SIDES; i++)
		put_sight(output, diff, d, (enum diff_side)i);
}

/* List the threads that have no partner. */
static void put_lonely(struct ptd_output *output, const struct stream *stream, char side)
{
	for (size_t i = 0; i < stream->tracks.n; i++) {
		if (stream->tracks.items[i]->other)
			continue;
		put(output, "\n");
		put_thread(output, stream->tracks.items[i]);
		put(output, " is in %c only: %" PRIu64 " instruction%s\n", side,
		    stream->tracks.items[i]->n_insns, plural(stream->tracks.items[i]->n_insns));
	}
}

static void put_threads(struct ptd_output *output, const struct diff *diff)
{
	const struct stream *a = &diff->streams[DIFF_A];
	size_t n_pairs = 0, n_same;

	for (size_t i = 0; i < a->tracks.n; i++)
		n_pairs += a->tracks.items[i]->other != NULL;
	n_same = n_pairs - diff->differences.n - diff->n_unshown;
	put(output, "Threads that are the same: %zu\nThreads that differ: %zu\n", n_same,
	    n_pairs - n_same);
	for (size_t i = 0; i < diff->differences.n; i++)
		put_difference(output, diff, diff->differences.items[i]);
	if (diff->n_unshown > 0)
		put(output, "\n%zu more threads differ\n", diff->n_unshown);
	put_lonely(output, a, 'A');
	put_lonely(output, &diff->streams[DIFF_B], 'B');
}

static uint64_t distance(const uint64_t n[static _DIFF_SIDES])
{
	return n[DIFF_A] > n[DIFF_B] ? n[DIFF_A] - n[DIFF_B] : n[DIFF_B] - n[DIFF_A];
}

static bool is_different(const struct function *f)
{
	return distance(f->n_insns) != 0 || distance(f->n_entered) != 0;
}

static int by_distance(const void *pa, const void *pb)
{
	const struct function *const *a = pa, *const *b = pb;
	const uint64_t insns_a = distance((*a)->n_insns), insns_b = distance((*b)->n_insns);
	const uint64_t entered_a = distance((*a)->n_entered), entered_b = distance((*b)->n_entered);
	int r;

	if (insns_a != insns_b)
		return insns_a > insns_b ? -1 : 1;
	if (entered_a != entered_b)
		return entered_a > entered_b ? -1 : 1;
	r = strcmp((*a)->object, (*b)->object);
	return r ? r : strcmp((*a)->name ? (*a)->name : "", (*b)->name ? (*b)->name : "");
}

static void put_function(struct ptd_output *output, const struct function *f)
{
	char name[NAME_SHOWN + 1], object[NAME_SHOWN + 1], difference[24];

	name[output_printable(name, f->name ? f->name : "[unknown]", NAME_SHOWN)] = '\0';
	object[output_printable(object, f->object, NAME_SHOWN)] = '\0';
	(void)snprintf(difference, sizeof(difference), "%c%" PRIu64,
		       f->n_insns[DIFF_B] < f->n_insns[DIFF_A] ? '-' : '+', distance(f->n_insns));
	put(output, "%15" PRIu64 " %15" PRIu64 " %15s %11" PRIu64 " %11" PRIu64 "  %s (%s)\n",
	    f->n_insns[DIFF_A], f->n_insns[DIFF_B], difference, f->n_entered[DIFF_A],
	    f->n_entered[DIFF_B], name, object);
}

static int put_functions(struct ptd_output *output, const struct diff *diff, uint64_t n_rows)
{
	VEC(const struct function *) rows = {};
	int r = 0;

	for (size_t i = 0; r == 0 && i < diff->functions.n; i++)
		if (is_different(&diff->functions.items[i]))
			r = vec_push(&rows, &diff->functions.items[i]);
	if (r == 0) {
		if (rows.n > 0)
			qsort(rows.items, rows.n, sizeof(*rows.items), by_distance);
		put(output, "\nFunctions that differ: %zu\n", rows.n);
		if (rows.n > 0)
			put(output, "%15s %15s %15s %11s %11s  symbol (object)\n", "instructions A",
			    "B", "difference", "entered A", "B");
		for (size_t i = 0; i < rows.n && i < n_rows; i++)
			put_function(output, rows.items[i]);
		if (rows.n > n_rows)
			put(output, "  (%zu other%s)\n", rows.n - (size_t)n_rows,
			    plural(rows.n - n_rows));
	}
	vec_deinit(&rows);
	return r;
}

static int diff_open(const struct ptd_sink_config *config, struct ptd_output *output,
		     void **ret_state)
{
	struct sink *sink;
	uint64_t n = ROWS_SHOWN;
	int r;

	(void)output;
	r = option_number(config, "rows", &n);
	if (r < 0)
		return r;
	sink = calloc(1, sizeof(*sink));
	if (!sink)
		return -ENOMEM;
	*sink = (struct sink){ .diff = config->userdata, .n_rows = n };
	*ret_state = sink;
	return 0;
}

static int diff_finish(void *state, const struct ptd_stats *stats, struct ptd_output *output)
{
	const struct sink *sink = state;

	(void)stats;
	put_streams(output, sink->diff);
	put_threads(output, sink->diff);
	return put_functions(output, sink->diff, sink->n_rows);
}

static void diff_close(void *state)
{
	free(state);
}

static const struct ptd_sink_option options[] = {
	{ .name = "rows", .help = "N  how many functions are shown (20)" },
	{},
};

const struct ptd_sink_ops diff_ops = {
	.size = sizeof(diff_ops),
	.name = "diff",
	.help = "of two inputs: where their threads first differ, and functions",
	.options = options,
	.open = diff_open,
	.finish = diff_finish,
	.free = diff_close,
	.writes_last = true,
};
