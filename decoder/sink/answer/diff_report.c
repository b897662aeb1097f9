/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes what a comparison has found. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/answer/diff_state.h"
#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"

/* --- its text --------------------------------------------------------------------------------- */

#define put output_printf

static const char *const step_words[_PATH_STEP_KINDS] = {
	[PATH_BRANCH] = "went to",
	[PATH_INTERRUPTED] = "was interrupted, and went on at",
	[PATH_BROKEN] = "has a gap, and goes on at",
	[PATH_END] = "ends",
};

static const char *const step_names[_PATH_STEP_KINDS] = {
	[PATH_BRANCH] = "branch",
	[PATH_INTERRUPTED] = "interruption",
	[PATH_BROKEN] = "gap",
	[PATH_END] = "end",
};

/* Return: whether the thread did something else than to go on with the next instruction. */
static bool did_step(const struct diff_difference *d, enum diff_side side)
{
	return d->step[side].n_insns == d->n_insns;
}

static bool lacks_execution(const struct diff *diff, enum diff_side side)
{
	return diff->subject.function &&
	       diff->streams[side].n_executions < diff->subject.numbers[side];
}

static void put_streams(struct output *output, const struct diff *diff)
{
	const struct diff_subject *subject = &diff->subject;

	for (size_t i = 0; i < _DIFF_SIDES; i++) {
		const struct diff_stream *s = &diff->streams[i];

		put(output, "%c: ", "AB"[i]);
		output_name(output, subject->names[i]);
		if (subject->function) {
			put(output, ", execution %" PRIu64 " of ", subject->numbers[i]);
			output_name(output, subject->function);
		}
		put(output, ": %" PRIu64 " instruction%s, %zu thread%s\n", s->n_insns,
		    plural(s->n_insns), s->tracks.n, plural(s->tracks.n));
		if (lacks_execution(diff, (enum diff_side)i))
			put(output, "   there are %" PRIu64 " executions\n", s->n_executions);
		if (s->n_left_out > 0)
			put(output, "   more than %u threads: the others are left out\n",
			    DIFF_THREADS_MAX);
	}
}

static void put_thread(struct output *output, const struct diff_track *track)
{
	output_name(output, track->comm[0] ? track->comm : "?");
	put(output, " %" PRId32 "/%" PRId32, (int32_t)track->pid, (int32_t)track->tid);
}

/* Say what one of the threads did. */
static void put_sight(struct output *output, const struct diff *diff,
		      const struct diff_difference *d, enum diff_side side)
{
	const enum ptd_clock clock = diff->streams[side].clock;
	const struct diff_sight *sight = &d->sights[side];
	char time[COLUMN_MAX];

	put(output, "    %c", "AB"[side]);
	*column_time(time, clock, sight->t) = '\0';
	if (sight->is_seen && clock != PTD_CLOCK_NONE)
		put(output, " at %s", time + strspn(time, " "));
	put(output, " %s", did_step(d, side) ? step_words[d->step[side].kind] : "went on with");
	put(output, sight->next[0] ? " %s\n" : "\n", sight->next);
}

static void put_frames(struct output *output, const struct diff_sight *sight)
{
	for (size_t i = 0; i < sight->n_frames; i++) {
		put(output, i == 0 ? "    Backtrace: " : " <- ");
		output_name(output, sight->frames[i]);
	}
	if (sight->n_open > sight->n_frames)
		put(output, " <- %zu more", sight->n_open - sight->n_frames);
	if (sight->n_frames > 0)
		put(output, "\n");
}

/* Say where the paths go on alike, and how much of them is different. */
static void put_rejoin(struct output *output, const struct rejoin *rejoin)
{
	if (!rejoin->is_found) {
		put(output,
		    "    They do not go on alike in the next %" PRIu64
		    " instructions of A and %" PRIu64 " of B\n",
		    rejoin->n_compared[DIFF_A], rejoin->n_compared[DIFF_B]);
		return;
	}
	put(output,
	    "    They go on alike behind %" PRIu64 " instruction%s of A and %" PRIu64 " of B\n",
	    rejoin->n_insns[DIFF_A], plural(rejoin->n_insns[DIFF_A]), rejoin->n_insns[DIFF_B]);
	put(output, "    More differences up to ");
	if (rejoin->is_whole)
		put(output, "the end");
	else
		put(output, "%" PRIu64 " instructions further", rejoin->n_compared[DIFF_A]);
	put(output, ": %zu; in all, %" PRIu64 " instruction%s of A and %" PRIu64 " of B differ\n",
	    rejoin->n_more, rejoin->n_different[DIFF_A], plural(rejoin->n_different[DIFF_A]),
	    rejoin->n_different[DIFF_B]);
}

static void put_difference(struct output *output, const struct diff *diff,
			   const struct diff_difference *d)
{
	const struct diff_sight *a = &d->sights[DIFF_A];

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
	put_frames(output, a);
	put_rejoin(output, &d->rejoin);
}

/* List the threads that have no partner. */
static void put_lonely(struct output *output, const struct diff_stream *stream, char side)
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

static size_t count_pairs(const struct diff *diff)
{
	const struct diff_stream *a = &diff->streams[DIFF_A];
	size_t n = 0;

	for (size_t i = 0; i < a->tracks.n; i++)
		n += a->tracks.items[i]->other != NULL;
	return n;
}

static void put_threads(struct output *output, const struct diff *diff)
{
	const size_t n_pairs = count_pairs(diff),
		     n_different = diff->differences.n + diff->n_unshown;

	put(output, "Threads that are the same: %zu\nThreads that differ: %zu\n",
	    n_pairs - n_different, n_different);
	for (size_t i = 0; i < diff->differences.n; i++)
		put_difference(output, diff, diff->differences.items[i]);
	if (diff->n_unshown > 0)
		put(output, "\n%zu more threads differ\n", diff->n_unshown);
	put_lonely(output, &diff->streams[DIFF_A], 'A');
	put_lonely(output, &diff->streams[DIFF_B], 'B');
}

static uint64_t distance(const uint64_t n[static _DIFF_SIDES])
{
	return n[DIFF_A] > n[DIFF_B] ? n[DIFF_A] - n[DIFF_B] : n[DIFF_B] - n[DIFF_A];
}

static bool is_different(const struct diff_function *f)
{
	return distance(f->n_insns) != 0 || distance(f->n_entered) != 0;
}

static int by_distance(const void *pa, const void *pb)
{
	const struct diff_function *const *a = pa, *const *b = pb;

	return COMPARE(distance((*b)->n_insns), distance((*a)->n_insns))
		       ?: COMPARE(distance((*b)->n_entered), distance((*a)->n_entered))
		       ?: strcmp((*a)->object, (*b)->object)
		       ?: strcmp((*a)->name ?: "", (*b)->name ?: "");
}

static void put_function(struct output *output, const struct diff_function *f)
{
	char difference[24];

	(void)snprintf(difference, sizeof(difference), "%c%" PRIu64,
		       f->n_insns[DIFF_B] < f->n_insns[DIFF_A] ? '-' : '+', distance(f->n_insns));
	put(output, "%15" PRIu64 " %15" PRIu64 " %15s %11" PRIu64 " %11" PRIu64 "  ",
	    f->n_insns[DIFF_A], f->n_insns[DIFF_B], difference, f->n_entered[DIFF_A],
	    f->n_entered[DIFF_B]);
	output_name(output, f->name ? f->name : "[unknown]");
	output_object(output, f->object);
	put(output, "\n");
}

struct rows {
	VEC(const struct diff_function *) list;
};

/* List the functions that differ, those with the largest difference first. */
static int list_functions(const struct diff *diff, struct rows *ret_rows)
{
	struct rows rows = {};
	int r = 0;

	for (size_t i = 0; r == 0 && i < diff->functions.n; i++)
		if (is_different(&diff->functions.items[i]))
			r = vec_push(&rows.list, &diff->functions.items[i]);
	if (r < 0) {
		vec_deinit(&rows.list);
		return r;
	}
	vec_sort(&rows.list, by_distance);
	*ret_rows = rows;
	return 0;
}

static void put_functions(struct output *output, const struct rows *rows, uint64_t n_rows)
{
	const size_t n = rows->list.n;

	put(output, "\nFunctions that differ: %zu\n", n);
	if (n > 0)
		put(output, "%15s %15s %15s %11s %11s  symbol (object)\n", "instructions A", "B",
		    "difference", "entered A", "B");
	for (size_t i = 0; i < n && i < n_rows; i++)
		put_function(output, rows->list.items[i]);
	if (n > n_rows)
		put(output, "  (%zu other%s)\n", n - (size_t)n_rows, plural(n - n_rows));
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static const char *const side_keys[_DIFF_SIDES] = { "a", "b" };

static void put_json_thread(struct json *json, const char *key, const struct diff_track *track)
{
	json_object(json, key);
	json_number(json, "pid", track->pid);
	json_number(json, "tid", track->tid);
	json_text(json, "comm", track->comm);
	json_number(json, "instructions", track->n_insns);
	json_close(json);
}

static void put_json_stream(struct json *json, const struct diff *diff, enum diff_side side)
{
	const struct diff_stream *s = &diff->streams[side];

	json_object(json, side_keys[side]);
	json_text(json, "input", diff->subject.names[side]);
	json_text(json, "function", diff->subject.function);
	if (diff->subject.function)
		json_number(json, "execution", diff->subject.numbers[side]);
	json_bool(json, "missing", lacks_execution(diff, side));
	json_number(json, "instructions", s->n_insns);
	json_array(json, "threads_alone");
	for (size_t i = 0; i < s->tracks.n; i++)
		if (!s->tracks.items[i]->other)
			put_json_thread(json, NULL, s->tracks.items[i]);
	json_close(json);
	json_close(json);
}

static void put_json_sight(struct json *json, const struct diff_difference *d, enum diff_side side)
{
	const struct diff_sight *sight = &d->sights[side];

	json_object(json, side_keys[side]);
	put_json_thread(json, "thread", d->tracks[side]);
	if (d->is_found) {
		json_text(json, "did", did_step(d, side) ? step_names[d->step[side].kind] : "next");
		json_number(json, "t", sight->t);
		json_text(json, "to", sight->next[0] ? sight->next : NULL);
	}
	json_close(json);
}

static void put_json_rejoin(struct json *json, const struct rejoin *rejoin)
{
	json_bool(json, "rejoined", rejoin->is_found);
	json_number(json, "more_differences", rejoin->n_more);
	json_bool(json, "compared_to_end", rejoin->is_whole);
	for (size_t i = 0; i < _DIFF_SIDES; i++) {
		json_object(json, i == DIFF_A ? "behind_a" : "behind_b");
		json_number(json, "instructions_before_rejoining", rejoin->n_insns[i]);
		json_number(json, "instructions_different", rejoin->n_different[i]);
		json_number(json, "instructions_compared", rejoin->n_compared[i]);
		json_close(json);
	}
}

static void put_json_difference(struct json *json, const struct diff_difference *d)
{
	const struct diff_sight *a = &d->sights[DIFF_A];

	json_object(json, NULL);
	json_bool(json, "found", d->is_found);
	json_number(json, "same_instructions", d->n_insns);
	json_text(json, "instruction", a->insn[0] ? a->insn : NULL);
	json_text(json, "at", a->at[0] ? a->at : NULL);
	for (size_t i = 0; i < _DIFF_SIDES; i++)
		put_json_sight(json, d, (enum diff_side)i);
	if (d->is_found)
		put_json_rejoin(json, &d->rejoin);
	json_array(json, "backtrace");
	for (size_t i = 0; i < a->n_frames; i++)
		json_text(json, NULL, a->frames[i]);
	json_close(json);
	json_close(json);
}

static void put_json_function(struct json *json, const struct diff_function *f)
{
	json_object(json, NULL);
	json_text(json, "function", f->name);
	json_text(json, "object", f->object);
	json_number(json, "instructions_a", f->n_insns[DIFF_A]);
	json_number(json, "instructions_b", f->n_insns[DIFF_B]);
	json_number(json, "entered_a", f->n_entered[DIFF_A]);
	json_number(json, "entered_b", f->n_entered[DIFF_B]);
	json_close(json);
}

static void put_json(struct json *json, const struct diff *diff, const struct rows *rows,
		     uint64_t n_rows)
{
	for (size_t i = 0; i < _DIFF_SIDES; i++)
		put_json_stream(json, diff, (enum diff_side)i);
	json_number(json, "threads_same",
		    count_pairs(diff) - diff->differences.n - diff->n_unshown);
	json_number(json, "threads_different", diff->differences.n + diff->n_unshown);
	json_array(json, "differences");
	for (size_t i = 0; i < diff->differences.n; i++)
		put_json_difference(json, diff->differences.items[i]);
	json_close(json);
	json_number(json, "functions_different", rows->list.n);
	json_array(json, "functions");
	for (size_t i = 0; i < rows->list.n && i < n_rows; i++)
		put_json_function(json, rows->list.items[i]);
	json_close(json);
}

/* --- the kind of sink ------------------------------------------------------------------------- */

struct report {
	const struct diff *diff; /* borrowed */
	uint64_t n_rows;
	struct rows rows;
};

static int diff_open(void *state, const struct sink_config *config, struct output *output)
{
	*(struct report *)state =
	    (struct report){ .diff = config->userdata, .n_rows = config->n_rows };
	return 0;
}

static int diff_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct report *report = state;

	return list_functions(report->diff, &report->rows);
}

static int diff_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct report *report = state;

	put_streams(output, report->diff);
	put_threads(output, report->diff);
	put_functions(output, &report->rows, report->n_rows);
	return 0;
}

static int diff_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	const struct report *report = state;

	put_json(json, report->diff, &report->rows, report->n_rows);
	return 0;
}

static void diff_close(void *state)
{
	vec_deinit(&((struct report *)state)->rows.list);
}

static const struct sink_option options[] = {
	{ .name = "rows", .value = "N", .help = "how many functions are shown (20)" },
	{ .name = "function",
	  .value = "NAME",
	  .help = "compare only two executions of this function" },
	{ .name = "a", .value = "N", .help = "which execution in the first input (1)" },
	{ .name = "b", .value = "N", .help = "which in the second (1), or of a single input (2)" },
	{ .name = "json", .help = "as JSON" },
	{},
};

const struct sink_ops diff_ops = {
	.name = "diff",
	.help = "of two inputs: where their threads first differ, and functions",
	.options = options,
	.state_size = sizeof(struct report),
	.open = diff_open,
	.finish = diff_finish,
	.text = diff_text,
	.json = diff_json,
	.close = diff_close,
	.writes_last = true,
};
