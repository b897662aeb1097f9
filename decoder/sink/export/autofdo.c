/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * AutoFDO
 *
 * How often each line of one object's functions was executed, in the text form of a sample profile
 * that clang -fprofile-sample-use takes. Each function is followed by its lines, counted from the
 * one where it begins; of a call, also by what was called and how often. What was inlined there
 * stands indented below the line, as a function of its own:
 *
 *	main:1290:1
 *	 2: 100 half:60 once:40
 *	 4.1: 90
 *	 5: twice:200
 *	  1: 100
 *
 * The number behind a name is the sum of the counts below it; behind that is how often the function
 * was entered. A line counts as often as that instruction of it which was executed most.
 *
 * Source: LLVM, "Sample profile text format" in the documentation of clang's users' manual.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/export/edges.h"
#include "decoder/sink/export/spots.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/tally.h"
#include "ptd/decode.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

/* What was called from a line. */
struct callee {
	const char *name; /* its linkage name; borrowed from the decoder */
	uint64_t n;
};

/* Number of lines behind the function's, and the discriminator. */
struct place {
	uint32_t line, discriminator;
};

struct function;

struct line {
	struct place place;
	uint64_t n;
	VEC(struct callee) callees;
	VEC(struct function *) inlined;
};

struct function {
	const char *name;       /* its linkage name; borrowed from the decoder */
	uint64_t n_entered;     /* of one that was not inlined */
	uint64_t n_sum;         /* of all its lines, and of those that were inlined */
	VEC(struct line) lines; /* by place */
};

struct autofdo {
	struct ptd_decoder *decoder; /* borrowed; NULL: no positions are known */
	struct tally tally;
	struct tally_index tally_index;
	struct edges edges;
	const struct ptd_symbol *const *symbols; /* by id; borrowed from the stream */

	struct arena arena; /* which the functions are in */
	struct map index; /* hash of a name → index of functions; of equal ones, + 1, + 2, ... */
	VEC(struct function *) functions;
	bool has_positions;
};

/* --- the profile ------------------------------------------------------------------------------ */

static struct function *add_function(struct autofdo *a, const char *name)
{
	struct function *function = arena_alloc(&a->arena, sizeof(*function));

	if (function)
		function->name = name;
	return function;
}

/* Return: the function that was compiled on its own, made at need; NULL if there is no memory. */
static struct function *find_function(struct autofdo *a, const char *name)
{
	uint64_t hash = map_hash(name, strlen(name)), *known;
	struct function *function;

	for (; (known = map_get(&a->index, hash)); hash++)
		if (strcmp(a->functions.items[*known]->name, name) == 0)
			return a->functions.items[*known];
	function = add_function(a, name);
	if (!function || map_put(&a->index, hash, a->functions.n) < 0 ||
	    vec_push(&a->functions, function) < 0)
		return NULL;
	return function;
}

static bool is_before(const struct place *a, const struct place *b)
{
	return a->line != b->line ? a->line < b->line : a->discriminator < b->discriminator;
}

/* Return: the line, made at need, valid until the next one is; NULL if there is no memory. */
static struct line *find_line(struct function *function, struct place place)
{
	const size_t i = vec_bisect(&function->lines, line, is_before(&line->place, &place));
	struct line *items = function->lines.items;

	if (i < function->lines.n && !is_before(&place, &items[i].place))
		return &items[i];
	if (vec_push(&function->lines, {}) < 0)
		return NULL;
	items = function->lines.items;
	memmove(items + i + 1, items + i, (function->lines.n - 1 - i) * sizeof(*items));
	items[i] = (struct line){ .place = place };
	return &items[i];
}

static struct function *find_inlined(struct autofdo *a, struct line *line, const char *name)
{
	struct function *function;

	for (size_t i = 0; i < line->inlined.n; i++)
		if (strcmp(line->inlined.items[i]->name, name) == 0)
			return line->inlined.items[i];
	function = add_function(a, name);
	return function && vec_push(&line->inlined, function) == 0 ? function : NULL;
}

static int add_callee(struct line *line, const char *name, uint64_t n)
{
	for (size_t i = 0; i < line->callees.n; i++)
		if (strcmp(line->callees.items[i].name, name) == 0) {
			line->callees.items[i].n += n;
			return 0;
		}
	return vec_push(&line->callees, { name, n });
}

/*
 * clang puts more than one number into a discriminator, each with its lowest bits first; the first
 * is the one that names a place: none if bit 0 is set, else the bits above it, and the sixth of
 * these says whether there are more than five.
 */
static uint32_t base_of(uint32_t discriminator)
{
	const uint32_t bits = discriminator >> 1;

	if (discriminator & 1)
		return 0;
	return bits & 0x20 ? (bits >> 1 & 0xfe0) | (bits & 0x1f) : bits & 0x1f;
}

static struct place place_of(const struct ptd_position *position)
{
	return (struct place){ (position->line - position->function_line) & 0xffff,
			       base_of(position->discriminator) };
}

/* Can the profile name the place? A name with other characters would be read as something else. */
static bool is_known(const struct ptd_position *position)
{
	return position->linkage_name && position->linkage_name[0] && position->function_line > 0 &&
	       position->line > 0 && !strpbrk(position->linkage_name, ": \t\n\v\f\r");
}

/* Find the line of a spot, and the function that was compiled on its own. */
static int find_spot(struct autofdo *a, uint64_t address, struct function **ret_function,
		     struct line **ret_line)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	struct function *function;
	struct line *line;
	int n;

	*ret_line = NULL;
	n = ptd_decoder_positions(a->decoder, a->edges.object, address, positions);
	if (n <= 0 || !is_known(&positions[n - 1]))
		return n < 0 ? n : 0;
	a->has_positions = true;
	*ret_function = function = find_function(a, positions[n - 1].linkage_name);
	for (int i = n - 1; function && i > 0; i--) {
		if (!is_known(&positions[i - 1]))
			return 0;
		line = find_line(function, place_of(&positions[i]));
		function = line ? find_inlined(a, line, positions[i - 1].linkage_name) : NULL;
	}
	line = function ? find_line(function, place_of(&positions[0])) : NULL;
	if (!line)
		return -ENOMEM;
	*ret_line = line;
	return 0;
}

/* Return: 0 and the name of the function at @address, NULL if it is not known; or -ENOMEM. */
static int find_callee(struct autofdo *a, uint64_t address, const char **ret_name)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	const int n = ptd_decoder_positions(a->decoder, a->edges.object, address, positions);

	*ret_name = n > 0 && is_known(&positions[n - 1]) ? positions[n - 1].linkage_name : NULL;
	return n < 0 ? n : 0;
}

static int add_spot(struct autofdo *a, const struct spot *spot, const struct edge *branches,
		    size_t n_branches)
{
	struct function *function;
	struct line *line;
	int r;

	r = find_spot(a, spot->address, &function, &line);
	if (r < 0 || !line)
		return r;
	if (spot->n > line->n)
		line->n = spot->n;
	if (spot->is_entry)
		function->n_entered += spot->n;
	for (size_t i = 0; i < n_branches && spot->is_call && r == 0; i++) {
		const char *name = NULL;

		if (branches[i].to)
			r = find_callee(a, branches[i].to, &name);
		if (r == 0 && name)
			r = add_callee(line, name, branches[i].n);
	}
	return r;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Add all that was executed of the object to the functions. */
static int make_profile(struct autofdo *a)
{
	struct spots spots = {};
	struct edge *branches = NULL;
	size_t n_branches, at = 0;
	int r;

	r = spots_list(&a->tally, a->edges.object, a->symbols, &spots);
	if (r == 0)
		r = edges_list(&a->edges, EDGE_BRANCH, &branches, &n_branches);
	for (size_t i = 0; i < spots.n && r == 0; i++) {
		size_t end;

		/* Both are by address. */
		while (at < n_branches && branches[at].from < spots.items[i].address)
			at++;
		for (end = at; end < n_branches && branches[end].from == branches[at].from &&
			       branches[end].from == spots.items[i].address;)
			end++;
		r = add_spot(a, &spots.items[i], branches + at, end - at);
	}
	free(branches);
	vec_deinit(&spots);
	return r;
}

/* --- as text ---------------------------------------------------------------------------------- */

/* Functions are inlined into each other at most PTD_POSITIONS_MAX times. */
static uint64_t sum_up(struct function *function)
{
	function->n_sum = 0;
	for (size_t i = 0; i < function->lines.n; i++) {
		const struct line *line = &function->lines.items[i];

		function->n_sum += line->n;
		for (size_t k = 0; k < line->inlined.n; k++)
			function->n_sum += sum_up(line->inlined.items[k]);
	}
	return function->n_sum;
}

static void put_place(struct output *output, size_t depth, const struct place *place)
{
	output_printf(output, "%*s%" PRIu32, (int)depth, "", place->line);
	if (place->discriminator)
		output_printf(output, ".%" PRIu32, place->discriminator);
	output_printf(output, ": ");
}

static void put_lines(struct output *output, const struct function *function, size_t depth)
{
	for (size_t i = 0; i < function->lines.n; i++) {
		const struct line *line = &function->lines.items[i];

		if (line->n > 0) {
			put_place(output, depth, &line->place);
			output_printf(output, "%" PRIu64, line->n);
			for (size_t k = 0; k < line->callees.n; k++) {
				output_printf(output, " ");
				output_name(output, line->callees.items[k].name);
				output_printf(output, ":%" PRIu64, line->callees.items[k].n);
			}
			output_printf(output, "\n");
		}
		for (size_t k = 0; k < line->inlined.n; k++) {
			const struct function *inlined = line->inlined.items[k];

			put_place(output, depth, &line->place);
			output_name(output, inlined->name);
			output_printf(output, ":%" PRIu64 "\n", inlined->n_sum);
			put_lines(output, inlined, depth + 1);
		}
	}
}

static int by_sum(const void *pa, const void *pb)
{
	const struct function *a = *(struct function *const *)pa;
	const struct function *b = *(struct function *const *)pb;

	return COMPARE(b->n_sum, a->n_sum) ?: strcmp(a->name, b->name);
}

static void put_functions(struct autofdo *a, struct output *output)
{
	for (size_t i = 0; i < a->functions.n; i++)
		(void)sum_up(a->functions.items[i]);
	vec_sort(&a->functions, by_sum);
	for (size_t i = 0; i < a->functions.n; i++) {
		const struct function *function = a->functions.items[i];

		output_name(output, function->name);
		output_printf(output, ":%" PRIu64 ":%" PRIu64 "\n", function->n_sum,
			      function->n_entered);
		put_lines(output, function, 1);
	}
}

/* --- its life --------------------------------------------------------------------------------- */

static int autofdo_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct autofdo *a = state;
	int r;

	a->symbols = batch->symbols;
	r = edges_add(&a->edges, batch);
	return r < 0 ? r : spots_count(&a->tally, &a->tally_index, batch);
}

static int autofdo_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct autofdo *a = state;
	int r = 0;

	if (a->decoder && a->edges.object)
		r = make_profile(a);
	if (r == 0)
		put_functions(a, output);
	return r;
}

static const char *autofdo_omission(void *state)
{
	const struct autofdo *a = state;
	const char *complaint = edges_complaint(&a->edges);

	if (complaint || a->has_positions)
		return complaint;
	return "the object has no debug information: compile it with -g";
}

static void free_lines(struct function *function)
{
	for (size_t i = 0; i < function->lines.n; i++) {
		struct line *line = &function->lines.items[i];

		for (size_t k = 0; k < line->inlined.n; k++)
			free_lines(line->inlined.items[k]);
		vec_deinit(&line->inlined);
		vec_deinit(&line->callees);
	}
	vec_deinit(&function->lines);
}

static void autofdo_close(void *state)
{
	struct autofdo *a = state;

	vec_deinit_each(&a->functions, function, free_lines(*function));
	map_deinit(&a->index);
	arena_deinit(&a->arena);
	edges_deinit(&a->edges);
	tally_deinit(&a->tally);
}

static int autofdo_open(void *state, const struct sink_config *config, struct output *output)
{
	struct autofdo *a = state;

	a->decoder = config->decoder;
	return edges_init(&a->edges, sink_option(config, "binary"));
}

const struct sink_ops sink_autofdo = {
	.name = "autofdo",
	.help = "how often each line of an object was executed, for clang -fprofile-sample-use",
	.options = edges_options,
	.state_size = sizeof(struct autofdo),
	.open = autofdo_open,
	.batch = autofdo_batch,
	.finish = autofdo_finish,
	.omission = autofdo_omission,
	.close = autofdo_close,
	.writes_last = true,
};
