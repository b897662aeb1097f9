/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Pprof
 *
 * What was spent on which stack, for Go's pprof: a sample for each different stack, with the number
 * of calls, the time and the instructions of its innermost function itself. The file is one message
 * of protocol buffers, compressed by gzip. Fields of a message may come in any order, so that the
 * texts come last, and a reader finds them by their numbers.
 *
 * Source: profile.proto of github.com/google/pprof.
 */

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/srcline.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

/* --- gzip ------------------------------------------------------------------------------------- */

/* Compresses what a sink writes, piece by piece, as a file of gzip (RFC 1952). */

#define LEVEL          1
#define LEVEL_BUF_SIZE ISAL_DEF_LVL1_DEFAULT
#define PIECE_SIZE     ((size_t)1 << 16) /* bytes of room for what is compressed */

struct gzip {
	struct output *output;
	struct isal_zstream stream;
	uint8_t level_buf[LEVEL_BUF_SIZE];
};

/* Begin a file. @output is borrowed. Return: 0 or -ENOMEM. */
static int gzip_new(struct output *output, struct gzip **ret_gzip)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return -ENOMEM;
	gzip->output = output;
	isal_deflate_init(&gzip->stream);
	gzip->stream.gzip_flag = IGZIP_GZIP;
	gzip->stream.level = LEVEL;
	gzip->stream.level_buf = gzip->level_buf;
	gzip->stream.level_buf_size = LEVEL_BUF_SIZE;
	*ret_gzip = gzip;
	return 0;
}

/* Compress what the stream has, until the output is not full any more. */
static int deflate_all(struct gzip *gzip)
{
	struct isal_zstream *stream = &gzip->stream;
	struct output *output = gzip->output;

	do {
		if (output_reserve(output, PIECE_SIZE) < 0)
			return output->error;
		stream->next_out = output->buffer + output->n_used;
		stream->avail_out = (uint32_t)PIECE_SIZE;
		if (isal_deflate(stream) != COMP_OK)
			return -EIO;
		output->n_used += PIECE_SIZE - stream->avail_out;
	} while (stream->avail_out == 0);
	return 0;
}

/* Add bytes. Return: 0 or negative errno. */
static int gzip_write(struct gzip *gzip, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	int r = 0;

	while (r == 0 && size > 0) {
		const uint32_t n = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;

		gzip->stream.next_in = (uint8_t *)(uintptr_t)from; /* is only read */
		gzip->stream.avail_in = n;
		r = deflate_all(gzip);
		from += n;
		size -= n;
	}
	return r;
}

/* Nothing more comes: write the end of the file. Return: 0 or negative errno. */
static int gzip_finish(struct gzip *gzip)
{
	gzip->stream.end_of_stream = 1;
	return deflate_all(gzip);
}

/* @gzip may be NULL. Return: NULL. */
static struct gzip *gzip_free(struct gzip *gzip)
{
	free(gzip);
	return NULL;
}

/* --- pprof ------------------------------------------------------------------------------------ */

/* Numbers of fields. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DEFAULT_TYPE = 14,
};

enum {
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,

	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,

	LABEL_KEY = 1,
	LABEL_TEXT = 2,

	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7, /* and files, lines, inlined functions: the next three */
	MAPPING_HAS_INLINED = 10,

	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,

	LINE_FUNCTION = 1,
	LINE_LINE = 2,

	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILE = 4,
	FUNCTION_LINE = 5,
};

#define COMM_MAX 15 /* the kernel keeps no more of a thread's name */

enum wire_type {
	WIRE_NUMBER = 0,
	WIRE_BYTES = 2,
};

/* Numbers of texts. */
enum {
	TEXT_EMPTY,
	TEXT_CALLS,
	TEXT_COUNT,
	TEXT_TIME,
	TEXT_UNIT,
	TEXT_INSTRUCTIONS,
	TEXT_THREAD,
	_TEXTS,
};

#define FIELDS_SIZE ((size_t)64 << 10) /* bytes that are compressed together */

struct pprof {
	struct stacktree tree; /* comes first */
	const struct ptd_info *info;
	struct ptd_calls *calls;     /* the sink's */
	struct ptd_decoder *decoder; /* NULL: no source lines are shown */

	/* Made at the end. */
	struct gzip *gzip;
	struct output fields;         /* of the profile, which are not compressed yet */
	struct output message, inner; /* a field of the profile; and a message in that */
	VEC(const char *) texts;      /* those with numbers from _TEXTS on; borrowed */
	struct map files;             /* numbers of texts by the decoder's string */
	struct map objects;           /* ids of objects that were written */
};

/* --- messages --------------------------------------------------------------------------------- */

#define NUMBER_MAX 10 /* bytes of a number of 64 bits */

/* Messages are made in memory. Errors are not checked: the output keeps the first one, which
 * put_profile_field() returns. */
static void put_number(struct output *message, uint64_t number)
{
	/* Seven bits a byte, the lowest first; the highest bit of each byte but the last is set. */
	if (output_reserve(message, NUMBER_MAX) < 0)
		return;
	for (; number >= 0x80; number >>= 7)
		message->buffer[message->n_used++] = (uint8_t)(number | 0x80);
	message->buffer[message->n_used++] = (uint8_t)number;
}

/* Add a number as the field. One that is 0 is left out: that is what it is to a reader. */
static void put_field(struct output *message, unsigned int field, uint64_t number)
{
	if (number == 0)
		return;
	put_number(message, field << 3 | WIRE_NUMBER);
	put_number(message, number);
}

/* Add what @inner has as the field, and empty @inner. */
static void put_message(struct output *message, unsigned int field, struct output *inner)
{
	put_number(message, field << 3 | WIRE_BYTES);
	put_number(message, inner->n_used);
	(void)output_write(message, inner->buffer, inner->n_used);
	if (inner->error < 0)
		message->error = inner->error;
	inner->n_used = 0;
}

/* Compress and write the fields. Return: 0 or negative errno. */
static int put_fields(struct pprof *pprof)
{
	int r = pprof->fields.error;

	if (r == 0)
		r = gzip_write(pprof->gzip, pprof->fields.buffer, pprof->fields.n_used);
	pprof->fields.n_used = 0;
	return r;
}

/* Add what was made in pprof->message as a field of the profile. Return: 0 or negative errno. */
static int put_profile_field(struct pprof *pprof, enum profile_field field)
{
	put_message(&pprof->fields, field, &pprof->message);
	/* Few bytes at a time take long to compress. */
	return pprof->fields.n_used < FIELDS_SIZE ? pprof->fields.error : put_fields(pprof);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Give the text a number. Return: 0 or -ENOMEM. */
static int add_text(struct pprof *pprof, const char *text, uint64_t *ret_number)
{
	*ret_number = _TEXTS + pprof->texts.n;
	return vec_push(&pprof->texts, text);
}

/* Get the number of a file's name, which is the decoder's string. Return: 0 or -ENOMEM. */
static int get_file(struct pprof *pprof, const char *file, uint64_t *ret_number)
{
	const int r =
	    map_number(&pprof->files, (uintptr_t)file, _TEXTS + pprof->texts.n, ret_number);

	return r > 0 ? vec_push(&pprof->texts, file) : r;
}

static int put_text(struct pprof *pprof, const char *text)
{
	char printable[OUTPUT_NAME_MAX];
	const size_t size = output_printable(printable, text, sizeof(printable));

	(void)output_write(&pprof->message, printable, size);
	return put_profile_field(pprof, PROFILE_STRING);
}

static int put_texts(struct pprof *pprof)
{
	const char *const fixed[_TEXTS] = {
		[TEXT_EMPTY] = "",
		[TEXT_CALLS] = "calls",
		[TEXT_COUNT] = "count",
		[TEXT_TIME] = "time",
		[TEXT_UNIT] = pprof->info->clock == PTD_CLOCK_NS ? "nanoseconds" : "ticks",
		[TEXT_INSTRUCTIONS] = "instructions",
		[TEXT_THREAD] = "thread",
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < _TEXTS; i++)
		r = put_text(pprof, fixed[i]);
	/* Readers take nothing for no name at all. */
	for (size_t i = 0; r == 0 && i < pprof->texts.n; i++)
		r = put_text(pprof, pprof->texts.items[i][0] ? pprof->texts.items[i] : "?");
	return r;
}

/* --- samples ---------------------------------------------------------------------------------- */

static bool has_time(const struct pprof *pprof)
{
	return pprof->info->clock != PTD_CLOCK_NONE;
}

static bool has_insns(const struct pprof *pprof)
{
	return !pprof->info->logs_calls;
}

static int put_type(struct pprof *pprof, uint64_t type, uint64_t unit)
{
	put_field(&pprof->message, TYPE_TYPE, type);
	put_field(&pprof->message, TYPE_UNIT, unit);
	return put_profile_field(pprof, PROFILE_SAMPLE_TYPE);
}

/* Write what the values of a sample are, in their order, and which one is shown at first. */
static int put_types(struct pprof *pprof)
{
	int r = put_type(pprof, TEXT_CALLS, TEXT_COUNT);

	if (r == 0 && has_time(pprof))
		r = put_type(pprof, TEXT_TIME, TEXT_UNIT);
	if (r == 0 && has_insns(pprof))
		r = put_type(pprof, TEXT_INSTRUCTIONS, TEXT_COUNT);
	put_field(&pprof->fields, PROFILE_DEFAULT_TYPE,
		  has_time(pprof) ? TEXT_TIME : TEXT_INSTRUCTIONS);
	return r;
}

/* Write the stack of the node, if anything was spent there. */
static int put_sample(struct pprof *pprof, const struct stacktree_node *node)
{
	const struct stacktree_node *nodes = pprof->tree.nodes.items, *above = node;
	struct output *message = &pprof->message, *inner = &pprof->inner;

	if (node->parent == STACKTREE_NONE ||
	    (node->n_calls == 0 && node->t_self == 0 && node->n_insns_self == 0))
		return 0;
	/* A function has the number of its location, which is its id and 1. */
	for (; above->parent != STACKTREE_NONE; above = &nodes[above->parent])
		put_number(inner, above->function + UINT64_C(1));
	put_message(message, SAMPLE_LOCATION, inner);
	put_number(inner, node->n_calls);
	if (has_time(pprof))
		put_number(inner, node->t_self);
	if (has_insns(pprof))
		put_number(inner, node->n_insns_self);
	put_message(message, SAMPLE_VALUE, inner);
	put_field(inner, LABEL_KEY, TEXT_THREAD);
	/* The names of threads have the first numbers. */
	put_field(inner, LABEL_TEXT, _TEXTS + (uint64_t)above->function);
	put_message(message, SAMPLE_LABEL, inner);
	return put_profile_field(pprof, PROFILE_SAMPLE);
}

static int put_samples(struct pprof *pprof)
{
	const struct stacktree *tree = &pprof->tree;
	int r = 0;

	for (size_t i = 0; r == 0 && i < tree->names.n; i++)
		r = vec_push(&pprof->texts, tree->names.items[i].text);
	for (size_t i = 0; r == 0 && i < tree->nodes.n; i++)
		r = put_sample(pprof, &tree->nodes.items[i]);
	return r;
}

/* --- functions -------------------------------------------------------------------------------- */

/* Write the object as a mapping, unless it was written. It says that all names are known, or a
 * reader would look for them in the file. */
static int put_object(struct pprof *pprof, const struct ptd_object *object)
{
	struct output *message = &pprof->message;
	uint64_t file;

	if (map_get(&pprof->objects, object->id))
		return 0;
	if (map_put(&pprof->objects, object->id, 1) < 0 || get_file(pprof, object->name, &file) < 0)
		return -ENOMEM;
	put_field(message, MAPPING_ID, object->id + UINT64_C(1));
	put_field(message, MAPPING_FILE, file);
	for (unsigned int i = MAPPING_HAS_FUNCTIONS; i <= MAPPING_HAS_INLINED; i++)
		put_field(message, i, 1);
	return put_profile_field(pprof, PROFILE_MAPPING);
}

/*
 * Write the function, and its location, which is where it begins. It has no system name: pprof cuts
 * the arguments off a name that is the same as that (findings/pprof-cuts-arguments.sh).
 */
static int put_function(struct pprof *pprof, const struct ptd_function *function)
{
	const uint64_t id = function->id + UINT64_C(1);
	struct output *message = &pprof->message, *inner = &pprof->inner;
	struct ptd_position position = {};
	uint64_t name, file;
	int r;

	r = srcline_of_function(pprof->decoder, function, &position);
	if (r < 0 || get_file(pprof, r > 0 ? position.file : function->object->name, &file) < 0 ||
	    add_text(pprof, function->name, &name) < 0)
		return -ENOMEM;
	put_field(message, FUNCTION_ID, id);
	put_field(message, FUNCTION_NAME, name);
	put_field(message, FUNCTION_FILE, file);
	put_field(message, FUNCTION_LINE, position.line);
	r = put_profile_field(pprof, PROFILE_FUNCTION);
	if (r == 0)
		r = put_object(pprof, function->object);
	if (r < 0)
		return r;
	put_field(message, LOCATION_ID, id);
	put_field(message, LOCATION_MAPPING, function->object->id + UINT64_C(1));
	put_field(message, LOCATION_ADDRESS, function->address);
	put_field(inner, LINE_FUNCTION, id);
	put_field(inner, LINE_LINE, position.line);
	put_message(message, LOCATION_LINE, inner);
	return put_profile_field(pprof, PROFILE_LOCATION);
}

/* Return: whether the object can be the program of a thread with the name @comm. */
static bool is_named(const struct ptd_object *object, const char *comm)
{
	const char *base = basename(object->name);

	return comm[0] && strncmp(base, comm, COMM_MAX) == 0 &&
	       (strlen(comm) == COMM_MAX || !base[strlen(comm)]);
}

static bool is_library(const struct ptd_object *object)
{
	const char *so = strstr(object->name, ".so");

	return object->name[0] == '[' || (so && (!so[3] || so[3] == '.'));
}

/* What was spent in an object, and below the threads that have its name. */
struct object_cost {
	const struct ptd_object *object;
	uint64_t self, named;
};

struct object_costs {
	VEC(struct object_cost) all; /* by the ids of the objects */
};

/* Get the costs of all objects, by their ids, and of all threads' names. Return: 0 or -ENOMEM. */
static int get_costs(struct pprof *pprof, const struct ptd_function *const *functions, size_t n,
		     struct object_costs *ret_costs, uint64_t *ret_by_name)
{
	const struct stacktree_node *nodes = pprof->tree.nodes.items;

	for (size_t i = 0; i < n; i++) {
		const struct ptd_object *object = functions[i]->object;
		struct object_cost *cost = vec_at(&ret_costs->all, object->id, {});

		if (!cost)
			return -ENOMEM;
		cost->object = object;
	}
	for (size_t i = 0; i < pprof->tree.nodes.n; i++) {
		const struct stacktree_node *above = &nodes[i];
		const uint64_t cost = has_time(pprof) ? nodes[i].t_self : nodes[i].n_insns_self;

		if (above->parent == STACKTREE_NONE || cost == 0)
			continue;
		ret_costs->all.items[functions[above->function]->object->id].self += cost;
		while (above->parent != STACKTREE_NONE)
			above = &nodes[above->parent];
		ret_by_name[above->function] += cost;
	}
	return 0;
}

/*
 * Find the program. No record says which object it is: that which has the name of the thread that
 * cost most; if none has the name of a thread, that which cost most itself, libraries aside.
 *
 * Return: 0 or -ENOMEM; @ret_program is NULL if there is none.
 */
static int find_program(struct pprof *pprof, const struct ptd_function *const *functions, size_t n,
			const struct ptd_object **ret_program)
{
	const struct stacktree *tree = &pprof->tree;
	_cleanup_(freep) uint64_t *by_name = calloc(tree->names.n + 1, sizeof(*by_name));
	const struct object_cost *best = NULL;
	struct object_costs costs = {};
	int r = by_name ? get_costs(pprof, functions, n, &costs, by_name) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < costs.all.n; i++) {
		struct object_cost *cost = &costs.all.items[i];

		if (!cost->object || is_library(cost->object))
			continue;
		for (size_t k = 0; k < tree->names.n; k++)
			if (by_name[k] > cost->named &&
			    is_named(cost->object, tree->names.items[k].text))
				cost->named = by_name[k];
		if (!best || cost->named > best->named ||
		    (cost->named == best->named && cost->self > best->self))
			best = cost;
	}
	*ret_program = best ? best->object : NULL;
	vec_deinit(&costs.all);
	return r;
}

static int put_functions(struct pprof *pprof)
{
	const struct ptd_function *const *functions;
	const struct ptd_object *program;
	size_t n;
	int r;

	functions = ptd_calls_functions(pprof->calls, &n);
	r = find_program(pprof, functions, n, &program);
	if (r == 0 && program)
		r = put_object(pprof, program);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = put_function(pprof, functions[i]);
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static void pprof_close(void *state)
{
	struct pprof *pprof = state;

	gzip_free(pprof->gzip);
	output_deinit(&pprof->fields);
	output_deinit(&pprof->message);
	output_deinit(&pprof->inner);
	vec_deinit(&pprof->texts);
	map_deinit(&pprof->files);
	map_deinit(&pprof->objects);
	stacktree_deinit(&pprof->tree);
}

static int pprof_open(void *state, const struct sink_config *config, struct output *output)
{
	struct pprof *pprof = state;

	pprof->info = config->info;
	pprof->calls = config->calls;
	pprof->fields = output_memory();
	pprof->message = output_memory();
	pprof->inner = output_memory();
	if (config->positions != SINK_NO_POSITIONS)
		pprof->decoder = config->decoder;
	return gzip_new(output, &pprof->gzip);
}

static int pprof_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct pprof *pprof = state;
	int r = stacktree_finish(&pprof->tree);

	if (r == 0)
		r = put_types(pprof);
	if (r == 0)
		r = put_samples(pprof);
	if (r == 0)
		r = put_functions(pprof);
	if (r == 0)
		r = put_texts(pprof);
	if (r == 0)
		r = put_fields(pprof);
	return r < 0 ? r : gzip_finish(pprof->gzip);
}

const struct sink_ops sink_pprof = {
	.name = "pprof",
	.help = "what was spent on which stack, for Go's pprof",
	.state_size = sizeof(struct pprof),
	.open = pprof_open,
	.calls = stacktree_calls,
	.finish = pprof_finish,
	.omission = stacktree_omission,
	.close = pprof_close,
	.writes_last = true,
};
