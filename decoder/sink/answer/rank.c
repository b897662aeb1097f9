/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/rank.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/answer/executions.h"
#include "decoder/sink/branchcount.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "ptd/decode.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

#define MEMBERS_SHOWN 8  /* of a group, in the text */
#define MARGIN        31 /* before those behind the first one */

/* What can be seen of one place. */
enum seen {
	SEEN_TAKEN,
	SEEN_NOT_TAKEN,
	SEEN_ONLY_TAKEN,
	SEEN_ONLY_NOT_TAKEN,
	SEEN_TARGET,
	SEEN_ENTERED,
	_SEEN,
};

static const char *const seen_names[_SEEN] = {
	[SEEN_TAKEN] = "taken",
	[SEEN_NOT_TAKEN] = "not taken",
	[SEEN_ONLY_TAKEN] = "always taken",
	[SEEN_ONLY_NOT_TAKEN] = "never taken",
	[SEEN_TARGET] = "led to",
	[SEEN_ENTERED] = "entered",
};

/* Where something is, in any run. */
struct spot {
	uint32_t object; /* index */
	uint64_t address;
	const char *symbol; /* "" if there is none; texts are the rank's */
	uint64_t offset;    /* in the symbol */
	const char *file;   /* the last part of its path; NULL: not known */
	uint64_t path;      /* a hash of all of it */
	uint32_t line;
	bool has_others; /* it led to more places than are counted */

	/* In run number @run: code of several objects may be the same. */
	uint32_t run;
	bool taken, not_taken;
	uint64_t taken_at, not_taken_at;
};

struct fact {
	uint32_t spot, to; /* indices; @to of SEEN_TARGET */
	enum seen seen;
	uint32_t run;       /* the last one that has counted it */
	uint32_t n_runs[2]; /* good ones, bad ones */
	uint64_t runs;      /* which ones: a sum of the numbers that stand for each */
	double at;          /* sum over bad runs: when it was seen first, as a part of the run */
	double score;
};

/* What was seen in the same runs, in the order in which it happens. */
struct group {
	size_t first, n; /* facts */
};

/* An object, in any run. */
struct rank_object {
	const char *name;
	uint8_t build_id[20];
	uint8_t build_id_size;
	bool is_system; /* it is a library of the system, or the kernel's */
};

struct rank {
	struct arena arena;
	VEC(struct rank_object) objects;
	VEC(struct spot) spots;
	VEC(struct fact) facts;
	VEC(struct group) groups;
	struct map spot_of, fact_of; /* indices */
	uint32_t n_runs[2];          /* good ones, bad ones */
	uint64_t n_rows;

	/* Of the decoder whose stream is taken. */
	struct ptd_decoder *decoder;
	VEC(uint32_t) object_of; /* by id: index + 1 */
	const struct ptd_symbol *const *symbols;
	size_t n_symbols;

	/* Of the run that is being counted. */
	uint32_t run; /* its number, from 1 */
	bool is_bad;
	uint64_t run_number; /* stands for it, so that sums of different runs differ */
	uint64_t run_size;   /* how many runs of blocks it has */
	VEC(uint32_t) spots_of_run;
};

/* A run, or a part of one, that is being taken. */
struct rank_run {
	struct rank *rank;    /* borrowed */
	const char *function; /* that makes it bad; NULL: none does */
	bool is_bad;
	struct branchcount count;
	VEC(uint64_t) entered;                /* by block id: that of the first run, + 1; 0: none */
	VEC(const struct ptd_block *) blocks; /* that begin functions, and were entered */
};

/* --- a run ------------------------------------------------------------------------------------ */

int rank_new(struct rank **ret_rank)
{
	*ret_rank = calloc(1, sizeof(**ret_rank));
	return *ret_rank ? 0 : -ENOMEM;
}

struct rank *rank_free(struct rank *rank)
{
	if (!rank)
		return NULL;
	vec_deinit(&rank->object_of);
	vec_deinit(&rank->spots_of_run);
	vec_deinit(&rank->objects);
	vec_deinit(&rank->spots);
	vec_deinit(&rank->facts);
	vec_deinit(&rank->groups);
	map_deinit(&rank->spot_of);
	map_deinit(&rank->fact_of);
	arena_deinit(&rank->arena);
	free(rank);
	return NULL;
}

int rank_kind_of(const char *text, enum rank_kind *ret_kind, const char **ret_function)
{
	static const char enter[] = "enter:";
	const size_t size = sizeof(enter) - 1;

	*ret_function = NULL;
	if (strcmp(text, "crash") == 0) {
		*ret_kind = RANK_CRASH;
		return 0;
	}
	if (strncmp(text, enter, size) != 0 || !text[size])
		return -EINVAL;
	*ret_kind = RANK_ENTER;
	*ret_function = text + size;
	return 0;
}

/* Return: whether a signal killed a process. */
static bool has_crashed(struct ptd_decoder *decoder)
{
	const struct ptd_sideband *record;
	bool has = false;

	while (ptd_decoder_next_sideband(decoder, &record) == 0)
		has = has || (record->kind == PTD_SIDEBAND_EXIT && record->signal != 0);
	return has;
}

void rank_use(struct rank *rank, struct ptd_decoder *decoder)
{
	rank->decoder = decoder;
	rank->object_of.n = 0;
}

int rank_run_new(struct rank *rank, enum rank_kind kind, const char *function,
		 struct rank_run **ret_run)
{
	struct rank_run *run = calloc(1, sizeof(*run));

	if (!run)
		return -ENOMEM;
	run->rank = rank;
	run->function = kind == RANK_ENTER ? function : NULL;
	run->is_bad = kind == RANK_BAD || (kind == RANK_CRASH && has_crashed(rank->decoder));
	*ret_run = run;
	return 0;
}

struct rank_run *rank_run_free(struct rank_run *run)
{
	if (!run)
		return NULL;
	branchcount_deinit(&run->count);
	vec_deinit(&run->entered);
	vec_deinit(&run->blocks);
	free(run);
	return NULL;
}

uint32_t rank_n_runs(const struct rank *rank, bool is_bad)
{
	return rank->n_runs[is_bad];
}

/* Return: whether @block begins where its function does. */
static bool is_entry(const struct ptd_batch *batch, const struct ptd_block *block)
{
	const uint32_t symbol = block->insns[0].symbol;

	return symbol != PTD_NO_SYMBOL && symbol < batch->n_symbols &&
	       batch->symbols[symbol]->address == block->address && !batch->symbols[symbol]->is_plt;
}

static int note_entries(struct rank_run *run, const struct ptd_batch *batch)
{
	int r = 0;

	for (size_t i = 0; i < batch->n_runs && r == 0; i++) {
		const struct ptd_block *block = batch->runs[i].block;
		uint64_t *at = vec_at(&run->entered, block->id, 0);

		if (!at)
			return -ENOMEM;
		if (*at || batch->runs[i].first > 0)
			continue;
		*at = run->count.n_runs + i + 1;
		if (!is_entry(batch, block))
			continue;
		r = vec_push(&run->blocks, block);
		if (run->function &&
		    executions_name_is(batch->symbols[block->insns[0].symbol]->name, run->function))
			run->is_bad = true;
	}
	return r;
}

int rank_run_batch(struct rank_run *run, const struct ptd_batch *batch)
{
	const int r = note_entries(run, batch);

	run->rank->symbols = batch->symbols;
	run->rank->n_symbols = batch->n_symbols;
	return r < 0 ? r : branchcount_batch(&run->count, batch);
}

/* --- from a run to all of them ---------------------------------------------------------------- */

static bool is_same_object(const struct rank_object *a, const struct ptd_object *b)
{
	if (a->build_id_size > 0 || b->build_id_size > 0)
		return a->build_id_size == b->build_id_size &&
		       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
	return strcmp(a->name, b->name) == 0;
}

/* Return: whether it is a library of the system, or the kernel's. */
static bool is_system(const char *name)
{
	static const char *const places[] = { "/lib/",     "/lib32/",     "/lib64/",
					      "/usr/lib/", "/usr/lib32/", "/usr/lib64/" };
	static const char *const own[] = { "[jit", "[anon", "[heap", "[stack" };

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (strncmp(name, own[i], strlen(own[i])) == 0)
			return false;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strncmp(name, places[i], strlen(places[i])) == 0)
			return strstr(basename(name), ".so");
	return name[0] == '[';
}

static int find_object(struct rank *rank, const struct ptd_object *object, uint32_t *ret_index)
{
	uint32_t *known = vec_at(&rank->object_of, object->id, 0);
	struct rank_object new = { .build_id_size = object->build_id_size };
	uint32_t i = 0;

	if (!known)
		return -ENOMEM;
	if (*known == 0) {
		while (i < rank->objects.n && !is_same_object(&rank->objects.items[i], object))
			i++;
		if (i == rank->objects.n) {
			new.name = arena_strdup(&rank->arena, object->name);
			new.is_system = is_system(object->name);
			memcpy(new.build_id, object->build_id, sizeof(new.build_id));
			if (!new.name || vec_push(&rank->objects, new) < 0)
				return -ENOMEM;
		}
		*known = i + 1;
	}
	*ret_index = *known - 1;
	return 0;
}

/* Find out what the spot, which is new, is called. */
static int name_spot(struct rank *rank, const struct branch_place *place, struct spot *spot)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	const struct ptd_symbol *symbol =
	    place->symbol < rank->n_symbols ? rank->symbols[place->symbol] : NULL;
	int n;

	spot->symbol = symbol ? arena_strdup(&rank->arena, symbol->name) : "";
	if (!spot->symbol)
		return -ENOMEM;
	spot->offset = symbol ? place->address - symbol->address : 0;
	n = ptd_decoder_positions(rank->decoder, place->object, place->address, positions);
	if (n <= 0 || !positions[0].file || positions[0].line == 0)
		return n < 0 ? n : 0;
	spot->file = arena_strdup(&rank->arena, basename(positions[0].file));
	spot->path = map_hash(positions[0].file, strlen(positions[0].file));
	spot->line = positions[0].line;
	return spot->file ? 0 : -ENOMEM;
}

static int find_spot(struct rank *rank, const struct branch_place *place, uint32_t *ret_index)
{
	struct spot spot = { .address = place->address };
	uint64_t index;
	int r;

	r = find_object(rank, place->object, &spot.object);
	if (r < 0)
		return r;
	/* No program has as many objects, or addresses as wide, that two keys would be one. */
	r = map_number(&rank->spot_of, (uint64_t)spot.object << 48 ^ spot.address, rank->spots.n,
		       &index);
	*ret_index = (uint32_t)index;
	if (r <= 0)
		return r;
	r = name_spot(rank, place, &spot);
	return r < 0 ? r : vec_push(&rank->spots, spot);
}

/* Count that it was seen in the run, first behind @at runs of blocks. */
static int count_fact(struct rank *rank, uint32_t spot, uint32_t to, enum seen seen, uint64_t at)
{
	struct fact *fact;
	uint64_t index;
	int r;

	r = map_number(&rank->fact_of, ((uint64_t)to << 32 | spot) * _SEEN + seen, rank->facts.n,
		       &index);
	if (r > 0)
		r = vec_push(&rank->facts, { .spot = spot, .to = to, .seen = seen });
	if (r < 0)
		return r;
	fact = &rank->facts.items[index];
	if (fact->run == rank->run)
		return 0;
	fact->run = rank->run;
	fact->n_runs[rank->is_bad]++;
	fact->runs += rank->run_number;
	if (rank->is_bad)
		fact->at += (double)at / (double)(rank->run_size + 1);
	return 0;
}

/* Note which ways the branch went. */
static void note_ways(struct rank *rank, struct spot *spot, const struct branch *branch)
{
	if (spot->run != rank->run) {
		spot->run = rank->run;
		spot->taken = spot->not_taken = false;
	}
	if (branch->n_taken > 0 && (!spot->taken || branch->taken_at < spot->taken_at))
		spot->taken_at = branch->taken_at;
	if (branch->n_not_taken > 0 &&
	    (!spot->not_taken || branch->not_taken_at < spot->not_taken_at))
		spot->not_taken_at = branch->not_taken_at;
	spot->taken = spot->taken || branch->n_taken > 0;
	spot->not_taken = spot->not_taken || branch->n_not_taken > 0;
	spot->has_others = spot->has_others || branch->n_others > 0;
}

static int take_branch(struct rank *rank, const struct branch *branch)
{
	const uint32_t symbol = branch->place.symbol;
	uint32_t spot, to;
	int r;

	/* A stub says nothing that its caller, and what it leads to, do not say. */
	if (symbol < rank->n_symbols && rank->symbols[symbol]->is_plt)
		return 0;
	r = find_spot(rank, &branch->place, &spot);
	if (r == 0 && rank->spots.items[spot].run != rank->run)
		r = vec_push(&rank->spots_of_run, spot);
	if (r == 0)
		note_ways(rank, &rank->spots.items[spot], branch);
	for (size_t i = 0; i < branch->targets.n && r == 0; i++) {
		r = find_spot(rank, &branch->targets.items[i].place, &to);
		if (r == 0)
			r = count_fact(rank, spot, to, SEEN_TARGET, branch->targets.items[i].at);
	}
	return r;
}

/* All of the run was noted. */
static int count_ways(struct rank *rank, uint32_t index)
{
	const struct spot spot = rank->spots.items[index];
	int r = 0;

	if (spot.taken)
		r = count_fact(rank, index, 0, SEEN_TAKEN, spot.taken_at);
	if (spot.not_taken && r == 0)
		r = count_fact(rank, index, 0, SEEN_NOT_TAKEN, spot.not_taken_at);
	if (spot.taken && !spot.not_taken && r == 0)
		r = count_fact(rank, index, 0, SEEN_ONLY_TAKEN, spot.taken_at);
	if (spot.not_taken && !spot.taken && r == 0)
		r = count_fact(rank, index, 0, SEEN_ONLY_NOT_TAKEN, spot.not_taken_at);
	return r;
}

static int take_entry(struct rank *rank, const struct ptd_block *block, uint64_t at)
{
	const struct branch_place place = { block->object, block->address, block->insns[0].symbol };
	uint32_t spot;
	const int r = find_spot(rank, &place, &spot);

	return r < 0 ? r : count_fact(rank, spot, 0, SEEN_ENTERED, at);
}

int rank_run_end(struct rank_run *run)
{
	struct rank *rank = run->rank;
	int r = branchcount_end(&run->count);

	rank->run++;
	rank->run_number = rank->run_number * UINT64_C(6364136223846793005) + 1442695040888963407;
	rank->run_size = run->count.n_runs;
	rank->is_bad = run->is_bad;
	rank->n_runs[run->is_bad]++;
	rank->spots_of_run.n = 0;
	for (size_t i = 0; i < run->count.rows.n && r == 0; i++)
		r = take_branch(rank, &run->count.rows.items[i]);
	for (size_t i = 0; i < rank->spots_of_run.n && r == 0; i++)
		r = count_ways(rank, rank->spots_of_run.items[i]);
	for (size_t i = 0; i < run->blocks.n && r == 0; i++)
		r = take_entry(rank, run->blocks.items[i],
			       run->entered.items[run->blocks.items[i]->id] - 1);
	return r;
}

/* --- the ranking ------------------------------------------------------------------------------ */

static double score_of(const struct rank *rank, const struct fact *fact)
{
	return (double)fact->n_runs[true] / (double)(rank->n_runs[true] + fact->n_runs[false]);
}

/* What goes together stands together, and the program goes before its libraries. */
static int by_score(const void *pa, const void *pb, void *userdata)
{
	const struct rank *rank = userdata;
	const struct fact *a = pa, *b = pb;
	const struct spot *at_a = &rank->spots.items[a->spot];
	const struct spot *at_b = &rank->spots.items[b->spot];
	const double first_a = a->at * (double)b->n_runs[true];
	const double first_b = b->at * (double)a->n_runs[true];

	return COMPARE(b->score, a->score) ?: COMPARE(a->runs, b->runs)
	       ?: COMPARE(rank->objects.items[at_a->object].is_system,
			  rank->objects.items[at_b->object].is_system)
	       ?: COMPARE(!at_a->file, !at_b->file) ?: COMPARE(first_a, first_b)
	       ?: COMPARE(a->seen, b->seen) ?: COMPARE(a->spot, b->spot) ?: COMPARE(a->to, b->to);
}

/* Return: the class of a group, of which lower ones go first: what is more frequent in bad runs
 * than in all, of programs, and of the system's libraries; and what is not. */
static int class_of(const struct rank *rank, const struct fact *head)
{
	const uint64_t n_bad = rank->n_runs[true], n_good = rank->n_runs[false];

	if (head->n_runs[true] * (n_bad + n_good) <=
	    n_bad * ((uint64_t)head->n_runs[true] + head->n_runs[false]))
		return 2;
	return rank->objects.items[rank->spots.items[head->spot].object].is_system;
}

static int by_class(const void *pa, const void *pb, void *userdata)
{
	const struct rank *rank = userdata;
	const struct group *a = pa, *b = pb;
	const struct fact *head_a = &rank->facts.items[a->first];
	const struct fact *head_b = &rank->facts.items[b->first];

	return COMPARE(class_of(rank, head_a), class_of(rank, head_b))
	       ?: COMPARE(head_b->score, head_a->score) ?: COMPARE(a->first, b->first);
}

/* Of what is seen in the same runs in one line, or at one place, only the first is kept. */
static int leave_out_repeats(struct rank *rank)
{
	struct map shown = {};
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < rank->facts.n && r >= 0; i++) {
		const struct fact *fact = &rank->facts.items[i];
		const struct spot *spot = &rank->spots.items[fact->spot];
		const uint64_t where = spot->file ? spot->path : spot->address;
		const uint64_t key[] = { spot->object, where, spot->line, fact->runs };
		uint64_t unused;

		if (fact->score <= 0)
			break;
		/* It may have led there in other runs, too. */
		if (fact->seen == SEEN_TARGET && spot->has_others)
			continue;
		r = map_number(&shown, map_hash(key, sizeof(key)), 1, &unused);
		if (r > 0)
			rank->facts.items[n++] = *fact;
	}
	map_deinit(&shown);
	rank->facts.n = n;
	return r < 0 ? r : 0;
}

static int make_groups(struct rank *rank)
{
	int r = 0;

	for (size_t i = 0; i < rank->facts.n && r == 0; i++) {
		struct group *last =
		    rank->groups.n > 0 ? &rank->groups.items[rank->groups.n - 1] : NULL;

		if (last && rank->facts.items[last->first].runs == rank->facts.items[i].runs)
			last->n++;
		else
			r = vec_push(&rank->groups, { .first = i, .n = 1 });
	}
	if (r == 0 && rank->groups.n > 1)
		qsort_r(rank->groups.items, rank->groups.n, sizeof(*rank->groups.items), by_class,
			rank);
	return r;
}

static int rank_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct rank *rank = *(struct rank **)state;
	int r;

	for (size_t i = 0; i < rank->facts.n; i++)
		rank->facts.items[i].score = score_of(rank, &rank->facts.items[i]);
	if (rank->facts.n > 1)
		qsort_r(rank->facts.items, rank->facts.n, sizeof(*rank->facts.items), by_score,
			rank);
	r = leave_out_repeats(rank);
	return r < 0 ? r : make_groups(rank);
}

/* --- text ------------------------------------------------------------------------------------- */

static void put_spot(const struct rank *rank, const struct spot *spot, struct output *output)
{
	if (spot->symbol[0]) {
		output_name(output, spot->symbol);
		output_printf(output, "+0x%" PRIx64, spot->offset);
	} else {
		output_printf(output, "0x%" PRIx64, spot->address);
	}
	if (spot->file) {
		output_printf(output, " at ");
		output_name(output, spot->file);
		output_printf(output, ":%" PRIu32, spot->line);
	}
	output_object(output, rank->objects.items[spot->object].name);
}

static void put_fact(const struct rank *rank, const struct fact *fact, struct output *output)
{
	output_printf(output, "%-13s", seen_names[fact->seen]);
	put_spot(rank, &rank->spots.items[fact->spot], output);
	if (fact->seen == SEEN_TARGET) {
		output_printf(output, ", to ");
		put_spot(rank, &rank->spots.items[fact->to], output);
	}
	output_printf(output, "\n");
}

static void put_group(const struct rank *rank, const struct group *group, struct output *output)
{
	const struct fact *facts = &rank->facts.items[group->first];

	output_printf(output, "%5.3f %4" PRIu32 " of %-4" PRIu32 "%4" PRIu32 " of %-4" PRIu32 " ",
		      facts->score, facts->n_runs[true], rank->n_runs[true], facts->n_runs[false],
		      rank->n_runs[false]);
	put_fact(rank, facts, output);
	for (size_t i = 1; i < group->n && i < MEMBERS_SHOWN; i++) {
		output_printf(output, "%*s", MARGIN, "");
		put_fact(rank, &facts[i], output);
	}
	if (group->n > MEMBERS_SHOWN)
		output_printf(output, "%*s(%zu other%s in the same runs)\n", MARGIN, "",
			      group->n - MEMBERS_SHOWN, plural(group->n - MEMBERS_SHOWN));
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct rank *rank = *(struct rank **)state;
	const struct group *groups = rank->groups.items;
	size_t n = 0;

	while (n < rank->groups.n && class_of(rank, &rank->facts.items[groups[n].first]) < 2)
		n++;
	output_printf(
	    output,
	    "Runs: %" PRIu32 " good, %" PRIu32 " bad\n\n%5s %-12s%-12s %-13swhere (object)\n",
	    rank->n_runs[false], rank->n_runs[true], "score", " in bad", " in good", "what");
	for (size_t i = 0; i < n && i < rank->n_rows; i++)
		put_group(rank, &groups[i], output);
	if (n > rank->n_rows)
		output_printf(output, "%*s(%zu other%s)\n", MARGIN, "", n - (size_t)rank->n_rows,
			      plural(n - rank->n_rows));
	if (n == 0)
		output_printf(output, "%*s(nothing tells them apart)\n", MARGIN, "");
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_json_spot(const struct rank *rank, struct json *json, const struct spot *spot)
{
	json_text(json, "object", rank->objects.items[spot->object].name);
	json_address(json, "address", spot->address);
	json_text(json, "symbol", spot->symbol[0] ? spot->symbol : NULL);
	if (spot->symbol[0])
		json_number(json, "offset", spot->offset);
	json_text(json, "file", spot->file);
	if (spot->file)
		json_number(json, "line", spot->line);
}

static void put_json_fact(const struct rank *rank, struct json *json, const struct fact *fact)
{
	json_object(json, NULL);
	json_text(json, "what", seen_names[fact->seen]);
	put_json_spot(rank, json, &rank->spots.items[fact->spot]);
	if (fact->seen == SEEN_TARGET) {
		json_object(json, "to");
		put_json_spot(rank, json, &rank->spots.items[fact->to]);
		json_close(json);
	}
	json_close(json);
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	const struct rank *rank = *(struct rank **)state;

	json_number(json, "good", rank->n_runs[false]);
	json_number(json, "bad", rank->n_runs[true]);
	json_array(json, "rank");
	for (size_t i = 0; i < rank->groups.n; i++) {
		const struct group *group = &rank->groups.items[i];
		const struct fact *facts = &rank->facts.items[group->first];

		json_object(json, NULL);
		json_number(json, "score_millionths", (uint64_t)(facts->score * 1e6 + 0.5));
		json_number(json, "in_bad", facts->n_runs[true]);
		json_number(json, "in_good", facts->n_runs[false]);
		json_array(json, "seen");
		for (size_t k = 0; k < group->n; k++)
			put_json_fact(rank, json, &facts[k]);
		json_close(json);
		json_close(json);
	}
	json_close(json);
	return 0;
}

/* --- its sink --------------------------------------------------------------------------------- */

static int rank_open(void *state, const struct sink_config *config, struct output *output)
{
	struct rank *rank = config->userdata;

	*(struct rank **)state = rank;
	rank->n_rows = config->n_rows;
	return 0;
}

static const struct sink_option options[] = {
	{ .name = "bad",
	  .value = "RULE",
	  .help = "which runs are bad, in place of --: crash, or enter:NAME" },
	{ .name = "function",
	  .value = "NAME",
	  .help = "of one recording: its slow executions against the others" },
	{ .name = "rows", .value = "N", .help = "how many groups are shown (20)" },
	{ .name = "json", .help = "as JSON, all groups" },
	{},
};

static bool rank_is_empty(const void *state)
{
	return (*(struct rank *const *)state)->groups.n == 0;
}

const struct sink_ops rank_ops = {
	.name = "rank",
	.help = "what good runs and bad runs do differently, the best predictor of bad ones first",
	.options = options,
	.state_size = sizeof(struct rank *),
	.open = rank_open,
	.finish = rank_finish,
	.text = put_text,
	.json = put_json,
	.is_empty = rank_is_empty,
	.writes_last = true,
};
