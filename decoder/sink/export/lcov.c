/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Lcov
 *
 * Which lines, functions and branches of the source code were executed, in the form of lcov's trace
 * files, which genhtml, lcov -a and editors read; see geninfo(1), "FILES". Each object that has
 * DWARF is a test of its own, named by its build-id:
 *
 *	TN:demo_5f1c…			the object
 *	SF:/src/demo.c			a file that it was compiled from
 *	FN:LINE,NAME			a function
 *	FNDA:COUNT,NAME			how often it was entered
 *	BRDA:LINE,BLOCK,WAY,COUNT	how often a conditional branch went this way
 *	DA:LINE,COUNT			how often a line was executed
 *	end_of_record
 *
 * A count of 0 means that it was not seen. What is counted is close to what gcov has:
 *
 *	row of a line table		counts for
 *	a function's entry		the line where the function is declared
 *	others of the line of its "{"	nothing
 *	of its "}"			nothing, except for the return that stands for it in a
 *					function without a value: gcc makes a nop of that
 *	of a function without a text	nothing: the compiler made it
 *	others				their line, as often as that instruction of them which was
 *					executed most
 *
 * The copies of a line in several functions are summed. Lines that the compiler made no row of,
 * such as most labels, are missing.
 *
 * lcov 2 does not take a function without a line that was executed, or one that was not seen with a
 * line that was: a function whose entry was not seen, but code of it, counts as entered once.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/branchcount.h"
#include "decoder/sink/export/edges.h"
#include "decoder/sink/export/spots.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/tally.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

#define INSN_NOP 0x90u
#define INSN_RET 0xc3u

#define NO_FILE UINT32_MAX

/* A place in the source code, and how often it was executed. */
struct place {
	uint32_t file; /* index */
	uint32_t line;
	uint32_t function; /* index; of copies that are one by now, any */
	uint64_t n;
};

struct function {
	uint32_t file, line; /* of its declaration; NO_FILE: not known */
	uint32_t opening;    /* the line of its entry's row; 0: it has none */
	uint32_t closing;    /* the last line of its rows */
	bool has_return;     /* of this last line */
	const char *name;
	uint64_t n; /* how often it was entered */
	bool was_seen;
};

/* One way of a conditional branch. */
struct branching {
	uint32_t file, line;
	uint64_t n_taken, n_not_taken;
};

/* What is known of an object while its text is made. */
struct coverage {
	struct ptd_line_table table;
	struct spots spots;
	struct map file_of_name, file_of_hash; /* a name's pointer, or its hash → index of files */
	VEC(const char *) files;               /* borrowed from the decoder */
	VEC(uint32_t) row_files;               /* the file of each row of the table */
	VEC(uint32_t) row_lines;               /* and the line that it counts for; 0: none */
	VEC(struct function) functions;
	VEC(struct place) places;
	VEC(struct branching) branchings;
};

struct lcov {
	struct ptd_decoder *decoder; /* borrowed; NULL: no lines are known */
	const char *binary;          /* borrowed; NULL: all objects */
	struct tally tally;
	struct tally_index tally_index;
	struct branchcount branches;
	const struct ptd_symbol *const *symbols; /* by id; borrowed from the stream */
	bool has_lines;
};

/* --- files ------------------------------------------------------------------------------------ */

/* Find the index of the file @name, of which there are several copies. Return: 0 or -ENOMEM. */
static int find_file(struct coverage *c, const char *name, uint32_t *ret_file)
{
	const uint64_t *known = map_get(&c->file_of_name, (uintptr_t)name);
	uint64_t hash = map_hash(name, strlen(name));

	if (known) {
		*ret_file = (uint32_t)*known;
		return 0;
	}
	while ((known = map_get(&c->file_of_hash, hash)) &&
	       strcmp(c->files.items[*known], name) != 0)
		hash++;
	*ret_file = known ? (uint32_t)*known : (uint32_t)c->files.n;
	if (!known &&
	    (map_put(&c->file_of_hash, hash, c->files.n) < 0 || vec_push(&c->files, name) < 0))
		return -ENOMEM;
	return map_put(&c->file_of_name, (uintptr_t)name, *ret_file);
}

static int find_files(struct coverage *c)
{
	uint32_t file;
	int r = 0;

	for (size_t i = 0; i < c->table.n_rows && r == 0; i++) {
		r = find_file(c, c->table.rows[i].file, &file);
		if (r == 0)
			r = vec_push(&c->row_files, file);
	}
	for (size_t i = 0; i < c->table.n_functions && r == 0; i++) {
		const struct ptd_line_function *known = &c->table.functions[i];

		file = NO_FILE;
		if (known->file && known->line > 0)
			r = find_file(c, known->file, &file);
		if (r == 0)
			r = vec_push(
			    &c->functions,
			    { .file = file, .line = known->line, .name = known->linkage_name });
	}
	return r;
}

/* --- functions -------------------------------------------------------------------------------- */

/* Return: how often the most executed instruction of the row was; @ret_entry: its first one. */
static uint64_t count_row(const struct coverage *c, const struct ptd_line_row *row,
			  uint64_t *ret_entry)
{
	size_t i = vec_bisect(&c->spots, spot, spot->address < row->address);
	uint64_t n = 0;

	*ret_entry = 0;
	for (; i < c->spots.n && c->spots.items[i].address < row->end; i++) {
		const struct spot *spot = &c->spots.items[i];

		if (spot->address == row->address)
			*ret_entry = spot->n;
		if (spot->n > n)
			n = spot->n;
	}
	return n;
}

/* Return: the function that the row is in, and not inlined there; NULL: it is in none. */
static struct function *function_of(struct coverage *c, const struct ptd_line_row *row)
{
	return row->function != UINT32_MAX && !row->is_inlined ? &c->functions.items[row->function]
							       : NULL;
}

static bool is_entry(const struct coverage *c, const struct ptd_line_row *row)
{
	return row->function != UINT32_MAX &&
	       c->table.functions[row->function].entry == row->address;
}

static bool has_byte(const struct lcov *lcov, const struct ptd_object *object, uint64_t address,
		     uint8_t byte)
{
	uint8_t found;

	return ptd_decoder_code(lcov->decoder, object, address, &found, 1) == 1 && found == byte;
}

/* Find what the functions begin and end with. */
static void look_at_functions(const struct lcov *lcov, const struct ptd_object *object,
			      struct coverage *c)
{
	for (size_t i = 0; i < c->table.n_rows; i++) {
		const struct ptd_line_row *row = &c->table.rows[i];
		struct function *function = function_of(c, row);

		if (function && is_entry(c, row) &&
		    !c->table.functions[row->function].is_artificial &&
		    c->row_files.items[i] == function->file)
			function->opening = row->line;
	}
	for (size_t i = 0; i < c->table.n_rows; i++) {
		const struct ptd_line_row *row = &c->table.rows[i];
		struct function *function = function_of(c, row);

		if (!function || function->opening == 0 || row->line < function->closing ||
		    c->row_files.items[i] != function->file)
			continue;
		if (row->line > function->closing)
			function->has_return = false;
		function->closing = row->line;
		if (has_byte(lcov, object, row->end - 1, INSN_RET))
			function->has_return = true;
	}
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Return: the line that the row counts for; 0: it counts for none. */
static uint32_t line_of(const struct lcov *lcov, const struct ptd_object *object,
			struct coverage *c, size_t i)
{
	const struct ptd_line_row *row = &c->table.rows[i];
	const struct function *function = function_of(c, row);

	if (row->function != UINT32_MAX && c->table.functions[row->function].is_artificial)
		return 0;
	if (!function || function->opening == 0 || c->row_files.items[i] != function->file)
		return row->line;
	if (is_entry(c, row))
		return function->line;
	if (row->line == function->closing && function->has_return &&
	    function->closing > function->opening) {
		const bool is_nop = has_byte(lcov, object, row->address, INSN_NOP);

		return is_nop && !c->table.functions[row->function].has_value ? row->line : 0;
	}
	return row->line == function->opening && function->opening > function->line &&
		       function->closing > function->opening
		   ? 0
		   : row->line;
}

static int find_lines(const struct lcov *lcov, const struct ptd_object *object, struct coverage *c)
{
	int r = 0;

	for (size_t i = 0; i < c->table.n_rows && r == 0; i++)
		r = vec_push(&c->row_lines, line_of(lcov, object, c, i));
	return r;
}

static int add_places(struct coverage *c)
{
	for (size_t i = 0; i < c->table.n_rows; i++) {
		const struct ptd_line_row *row = &c->table.rows[i];
		const uint32_t line = c->row_lines.items[i];
		uint64_t n_entered, n;
		int r;

		if (line == 0)
			continue;
		n = count_row(c, row, &n_entered);
		if (is_entry(c, row) && !row->is_inlined)
			c->functions.items[row->function].n = n_entered;
		r = vec_push(&c->places, { c->row_files.items[i], line, row->function, n });
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_place(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	return COMPARE(a->file, b->file)
		   ?: COMPARE(a->line, b->line) ?: COMPARE(a->function, b->function);
}

static const struct place *find_place(const struct coverage *c, uint32_t file, uint32_t line)
{
	const size_t i = vec_bisect(
	    &c->places, place, place->file < file || (place->file == file && place->line < line));

	return i < c->places.n && c->places.items[i].file == file && c->places.items[i].line == line
		   ? &c->places.items[i]
		   : NULL;
}

/* Make one of a line's places: of those in one function the greatest, of these the sum. */
static void unite_places(struct coverage *c)
{
	struct place *places = c->places.items;
	size_t n = 0;

	vec_sort(&c->places, by_place);
	for (size_t i = 0, k; i < c->places.n; i = k) {
		struct place sum = places[i];

		sum.n = 0;
		for (k = i;
		     k < c->places.n && places[k].file == sum.file && places[k].line == sum.line;) {
			const uint32_t function = places[k].function;
			uint64_t most = 0;

			for (; k < c->places.n && places[k].file == sum.file &&
			       places[k].line == sum.line && places[k].function == function;
			     k++)
				if (places[k].n > most)
					most = places[k].n;
			sum.n += most;
		}
		places[n++] = sum;
	}
	c->places.n = n;
}

/* Note which functions have a line of their own that was executed. */
static void see_functions(struct coverage *c)
{
	for (size_t i = 0; i < c->table.n_rows; i++) {
		const struct ptd_line_row *row = &c->table.rows[i];
		const uint32_t line = function_of(c, row) ? c->row_lines.items[i] : 0;
		const struct place *place = find_place(c, c->row_files.items[i], line);

		if (place && place->n > 0)
			c->functions.items[row->function].was_seen = true;
	}
}

static int by_declaration(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;

	return COMPARE(a->file, b->file) ?: strcmp(a->name, b->name) ?: COMPARE(a->line, b->line);
}

/* Copies of a function are one. Of those that have one name, and are declared at several lines,
 * which lcov 2 does not take, the first one stays. */
static void unite_functions(struct coverage *c)
{
	struct function *functions = c->functions.items;
	size_t n = 0;

	for (size_t i = 0; i < c->functions.n; i++)
		if (functions[i].opening > 0)
			functions[n++] = functions[i];
	c->functions.n = n;
	if (n == 0)
		return;
	vec_sort(&c->functions, by_declaration);
	n = 0;
	for (size_t i = 1; i < c->functions.n; i++) {
		if (functions[i].file != functions[n].file ||
		    strcmp(functions[i].name, functions[n].name) != 0) {
			functions[++n] = functions[i];
		} else if (functions[i].line == functions[n].line) {
			functions[n].n += functions[i].n;
			functions[n].was_seen |= functions[i].was_seen;
		}
	}
	c->functions.n = n + 1;
}

/* --- branches --------------------------------------------------------------------------------- */

static int add_branchings(const struct lcov *lcov, const struct ptd_object *object,
			  struct coverage *c)
{
	struct {
		const struct ptd_line_row *items;
		size_t n;
	} rows = { c->table.rows, c->table.n_rows };

	for (size_t k = 0; k < lcov->branches.rows.n; k++) {
		const struct branch *branch = &lcov->branches.rows.items[k];
		const uint64_t address = branch->place.address;
		uint32_t line;
		size_t i;
		int r;

		if (branch->place.object != object || branch->iclass != PTD_INSN_JUMP_COND ||
		    branch->n_taken + branch->n_not_taken == 0)
			continue;
		i = vec_bisect(&rows, row, row->address <= address);
		if (i == 0 || rows.items[i - 1].end <= address)
			continue;
		line = c->row_lines.items[i - 1];
		if (line == 0)
			continue;
		r = vec_push(&c->branchings, { c->row_files.items[i - 1], line, branch->n_taken,
					       branch->n_not_taken });
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- as text ---------------------------------------------------------------------------------- */

/* A test's name has letters, digits and '_'. */
static void put_test(struct output *output, const struct ptd_object *object)
{
	output_printf(output, "TN:");
	for (const char *name = basename(object->name); *name; name++) {
		const bool is_plain = (*name >= '0' && *name <= '9') ||
				      (*name >= 'A' && *name <= 'Z') ||
				      (*name >= 'a' && *name <= 'z');

		output_printf(output, "%c", is_plain ? *name : '_');
	}
	if (object->build_id_size > 0)
		output_printf(output, "_");
	for (size_t i = 0; i < object->build_id_size; i++)
		output_printf(output, "%02x", object->build_id[i]);
	output_printf(output, "\n");
}

static void put_functions(struct output *output, const struct coverage *c, uint32_t file)
{
	const size_t begin = vec_bisect(&c->functions, function, function->file < file);

	for (size_t i = begin; i < c->functions.n && c->functions.items[i].file == file; i++) {
		output_printf(output, "FN:%" PRIu32 ",", c->functions.items[i].line);
		output_name(output, c->functions.items[i].name);
		output_printf(output, "\n");
	}
	for (size_t i = begin; i < c->functions.n && c->functions.items[i].file == file; i++) {
		const struct function *function = &c->functions.items[i];

		output_printf(output, "FNDA:%" PRIu64 ",", function->n ?: function->was_seen);
		output_name(output, function->name);
		output_printf(output, "\n");
	}
}

static void put_branchings(struct output *output, const struct coverage *c, uint32_t file)
{
	size_t i = vec_bisect(&c->branchings, branching, branching->file < file);
	uint32_t line = 0, block = 0;

	for (; i < c->branchings.n && c->branchings.items[i].file == file; i++) {
		const struct branching *b = &c->branchings.items[i];

		block = b->line == line ? block + 1 : 0;
		line = b->line;
		output_printf(output,
			      "BRDA:%" PRIu32 ",%" PRIu32 ",0,%" PRIu64 "\nBRDA:%" PRIu32
			      ",%" PRIu32 ",1,%" PRIu64 "\n",
			      line, block, b->n_taken, line, block, b->n_not_taken);
	}
}

static void put_file(struct output *output, const struct ptd_object *object,
		     const struct coverage *c, const struct place *places, size_t n)
{
	put_test(output, object);
	output_printf(output, "SF:");
	output_name(output, c->files.items[places->file]);
	output_printf(output, "\n");
	put_functions(output, c, places->file);
	put_branchings(output, c, places->file);
	for (size_t i = 0; i < n; i++)
		output_printf(output, "DA:%" PRIu32 ",%" PRIu64 "\n", places[i].line, places[i].n);
	output_printf(output, "end_of_record\n");
}

static void put_object(struct output *output, const struct ptd_object *object,
		       const struct coverage *c)
{
	const struct place *places = c->places.items;

	for (size_t i = 0, k; i < c->places.n; i = k) {
		for (k = i + 1; k < c->places.n && places[k].file == places[i].file;)
			k++;
		put_file(output, object, c, places + i, k - i);
	}
}

/* --- an object -------------------------------------------------------------------------------- */

static int by_branching(const void *pa, const void *pb)
{
	const struct branching *a = pa, *b = pb;

	return COMPARE(a->file, b->file) ?: COMPARE(a->line, b->line);
}

static int cover(struct lcov *lcov, const struct ptd_object *object, struct coverage *c)
{
	int r;

	r = spots_list(&lcov->tally, object, lcov->symbols, &c->spots);
	if (r == 0)
		r = find_files(c);
	if (r < 0)
		return r;
	look_at_functions(lcov, object, c);
	r = find_lines(lcov, object, c);
	if (r == 0)
		r = add_places(c);
	if (r == 0)
		r = add_branchings(lcov, object, c);
	if (r < 0)
		return r;
	unite_places(c);
	see_functions(c);
	unite_functions(c);
	vec_sort(&c->branchings, by_branching);
	return 0;
}

static void forget(struct coverage *c)
{
	vec_deinit(&c->spots);
	map_deinit(&c->file_of_name);
	map_deinit(&c->file_of_hash);
	vec_deinit(&c->files);
	vec_deinit(&c->row_files);
	vec_deinit(&c->row_lines);
	vec_deinit(&c->functions);
	vec_deinit(&c->places);
	vec_deinit(&c->branchings);
}

static int write_object(struct lcov *lcov, const struct ptd_object *object, struct output *output)
{
	struct coverage c = {};
	int r;

	r = ptd_decoder_lines(lcov->decoder, object, &c.table);
	if (r < 0 || c.table.n_rows == 0)
		return r;
	lcov->has_lines = true;
	r = cover(lcov, object, &c);
	if (r == 0)
		put_object(output, object, &c);
	forget(&c);
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static int lcov_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct lcov *lcov = state;
	int r;

	lcov->symbols = batch->symbols;
	r = branchcount_batch(&lcov->branches, batch);
	return r < 0 ? r : spots_count(&lcov->tally, &lcov->tally_index, batch);
}

static bool is_asked_for(const struct lcov *lcov, const struct ptd_object *object)
{
	return !lcov->binary || edges_is_named(object, lcov->binary);
}

static int lcov_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct lcov *lcov = state;
	struct map written = {}; /* objects' ids → 1 */
	int r;

	r = branchcount_end(&lcov->branches);
	for (size_t i = 0; i < lcov->tally.blocks.n && r == 0 && lcov->decoder; i++) {
		const struct ptd_block *block = lcov->tally.blocks.items[i].block;

		if (!block || !is_asked_for(lcov, block->object) ||
		    map_get(&written, block->object->id))
			continue;
		r = map_put(&written, block->object->id, 1);
		if (r == 0)
			r = write_object(lcov, block->object, output);
	}
	map_deinit(&written);
	return r;
}

static const char *lcov_omission(void *state)
{
	return ((const struct lcov *)state)->has_lines
		   ? NULL
		   : "nothing that was executed has debug information: compile it with -g";
}

static void lcov_close(void *state)
{
	struct lcov *lcov = state;

	branchcount_deinit(&lcov->branches);
	tally_deinit(&lcov->tally);
}

static int lcov_open(void *state, const struct sink_config *config, struct output *output)
{
	struct lcov *lcov = state;

	lcov->decoder = config->decoder;
	lcov->binary = sink_option(config, "binary");
	return 0;
}

static const struct sink_option options[] = {
	{ .name = "binary", .value = "NAME", .help = "of this object alone: its path or name" },
	{},
};

const struct sink_ops sink_lcov = {
	.name = "lcov",
	.help = "which lines and branches were seen, for genhtml, lcov and editors",
	.options = options,
	.state_size = sizeof(struct lcov),
	.open = lcov_open,
	.batch = lcov_batch,
	.finish = lcov_finish,
	.omission = lcov_omission,
	.close = lcov_close,
	.writes_last = true,
};
