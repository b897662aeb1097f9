/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Fuchsia trace format
 *
 * The calls as tracks for Perfetto and magic-trace's viewer. A file is a sequence of records of
 * 64-bit words. The first word says the type and the size. Strings and threads are defined by
 * records of their own, and referred to by their numbers. There are few numbers, so old
 * ones get new meanings: a reader goes by the order in the file.
 *
 * Source: Fuchsia, docs/reference/tracing/trace-format.md.
 */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "decoder/sink/export/viewtracks.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/srcline.h"
#include "util/arena.h"

/* --- fxt record ------------------------------------------------------------------------------- */

/*
 * A record of the Fuchsia trace format while it is made: words of 64 bits. The first has
 * the type, the size and what belongs to the type. What follows depends on the type; arguments,
 * which have a name and a value, come last.
 *
 * Source: Fuchsia, docs/reference/tracing/trace-format.md.
 */

/* Reference to a string: it is in the record; its number of bytes. */
#define FXT_INLINE 0x8000u

/* Words of the longest record: it has a name, and a few words besides. */
#define FXT_RECORD_MAX (OUTPUT_NAME_MAX / 8 + 16)

enum fxt_record_type {
	FXT_RECORD_METADATA = 0,
	FXT_RECORD_INITIALIZATION = 1,
	FXT_RECORD_STRING = 2,
	FXT_RECORD_THREAD = 3,
	FXT_RECORD_EVENT = 4,
	FXT_RECORD_KERNEL_OBJECT = 7,
	FXT_RECORD_SCHEDULING = 8,
};

enum fxt_event_type {
	FXT_EVENT_INSTANT = 0,
	FXT_EVENT_BEGIN = 2,
	FXT_EVENT_END = 3,
};

enum fxt_arg_type {
	FXT_ARG_I32 = 1,
	FXT_ARG_U32 = 2,
	FXT_ARG_U64 = 4,
	FXT_ARG_STRING = 6,
	FXT_ARG_POINTER = 7,
	FXT_ARG_KOID = 8,
	FXT_ARG_BOOL = 9,
};

enum fxt_object_type {
	FXT_OBJECT_PROCESS = 1,
	FXT_OBJECT_THREAD = 2,
};

struct fxt_record {
	uint64_t words[FXT_RECORD_MAX]; /* as they are written; the first is set at the end */
	size_t n_words;                 /* with the first: 1 in an empty record */
	unsigned int n_args;
};

/* Return: an argument whose value is in its one word. @name is the number of a string. */
static inline uint64_t fxt_small_arg(enum fxt_arg_type type, uint16_t name, uint32_t value)
{
	return htole64((uint64_t)value << 32 | (uint64_t)name << 16 | 1 << 4 | (uint64_t)type);
}

/* Return: the bits of an event's first word, but for its record type and size. */
static inline uint64_t fxt_event_bits(enum fxt_event_type type, unsigned int n_args, uint8_t thread,
				      uint16_t category, uint16_t name)
{
	return (uint64_t)name << 48 | (uint64_t)category << 32 | (uint64_t)thread << 24 |
	       (uint64_t)n_args << 20 | (uint64_t)type << 16;
}

/* Add a word, or @size bytes of a text, which are filled up to whole words. */
static void fxt_record_word(struct fxt_record *record, uint64_t word)
{
	assert(record->n_words < FXT_RECORD_MAX);
	record->words[record->n_words++] = htole64(word);
}

static void fxt_record_text(struct fxt_record *record, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;

		memcpy(&word, text + i, size - i < 8 ? size - i : 8);
		fxt_record_word(record, le64toh(word));
	}
}

/* Add an argument of one word, or of two. */
static void fxt_record_small_arg(struct fxt_record *record, enum fxt_arg_type type, uint16_t name,
				 uint32_t value)
{
	record->n_args++;
	fxt_record_word(record, le64toh(fxt_small_arg(type, name, value)));
}

static void fxt_record_arg(struct fxt_record *record, enum fxt_arg_type type, uint16_t name,
			   uint64_t value)
{
	record->n_args++;
	fxt_record_word(record, (uint64_t)name << 16 | 2 << 4 | (uint64_t)type);
	fxt_record_word(record, value);
}

/*
 * Write the record, with its type, its size, and the other bits of its first word.
 *
 * Return: 0 or negative errno, which the output keeps.
 */
static int fxt_record_put(struct fxt_record *record, struct output *output,
			  enum fxt_record_type type, uint64_t bits)
{
	record->words[0] = htole64(bits | record->n_words << 4 | (uint64_t)type);
	return output_write(output, record->words, 8 * record->n_words);
}

/* --- fxt -------------------------------------------------------------------------------------- */

#define MAGIC            UINT64_C(0x0016547846040010)
#define TICKS_PER_SECOND UINT64_C(1000000000)
#define PROVIDER         1 /* our number among those that wrote the file */

#define STRINGS_MAX 0x7fffu
#define THREADS_MAX 0xffu

/* How many strings can be defined while a record is made that refers to older ones. */
#define STRINGS_MARGIN 16

/* Of a thread that leaves a CPU: why it does is not known. */
#define STATE_SUSPENDED 2

/* By this weight a thread is marked as the one that runs when none does. */
#define WEIGHT_IDLE INT32_MIN

/* Strings that keep their numbers. */
enum fixed_string {
	NAME_EMPTY, /* number 0 is the empty string */
	NAME_ADDRESS,
	NAME_OBJECT,
	NAME_FILE,
	NAME_LINE,
	NAME_ENTERED_BY,
	NAME_LEFT_BY,
	NAME_AMBIGUOUS,
	NAME_INSTRUCTIONS,
	NAME_BYTES,
	NAME_VALUE,
	NAME_EXTRA,
	NAME_CODE,
	NAME_HANDLER,
	NAME_PROCESS,
	NAME_SNAPSHOT,
	NAME_IN_WEIGHT,
	NAME_OUT_WEIGHT,
	NAME_CATEGORIES,                                     /* by enum viewtrack_category */
	NAME_HOWS = NAME_CATEGORIES + _VIEWTRACK_CATEGORIES, /* by enum ptd_call_how */
	NAME_MARKS = NAME_HOWS + _PTD_CALL_HOWS,
	NAME_GAPS = NAME_MARKS + _PTD_MARK_KINDS,
	_NAMES = NAME_GAPS + _PTD_GAP_REASONS,
};

static const char *const names[NAME_CATEGORIES] = {
	[NAME_ADDRESS] = "address",
	[NAME_OBJECT] = "object",
	[NAME_FILE] = "file",
	[NAME_LINE] = "line",
	[NAME_ENTERED_BY] = "entered by",
	[NAME_LEFT_BY] = "left by",
	[NAME_AMBIGUOUS] = "ambiguous",
	[NAME_INSTRUCTIONS] = "instructions",
	[NAME_BYTES] = "bytes lost",
	[NAME_VALUE] = "value",
	[NAME_EXTRA] = "extra",
	[NAME_CODE] = "code",
	[NAME_HANDLER] = "handler",
	[NAME_PROCESS] = "process",
	[NAME_SNAPSHOT] = "snapshot",
	[NAME_IN_WEIGHT] = "incoming_weight",
	[NAME_OUT_WEIGHT] = "outgoing_weight",
};

/* A string that gets a number when it is needed. */
struct fxt_string {
	const char *text; /* that can be printed */
	uint16_t size;
	uint16_t number;
	uint64_t defined; /* how many were defined before it; 0: it was not */
};

/* What the spans of a function have in common. */
struct fxt_function {
	struct fxt_string name;
	uint32_t file; /* index; VIEWTRACK_NONE: not known */
	uint32_t line;
	uint64_t defined;   /* least one of the strings that the record refers to */
	uint64_t record[8]; /* beginning of a span, without thread and time */
	uint8_t n_words, n_args;
};

struct fxt {
	struct viewtracks tracks; /* comes first */
	struct output *output;
	struct ptd_decoder *decoder; /* NULL: no source lines are shown */
	bool has_insns;              /* the input has instructions */

	VEC(struct fxt_function) functions; /* by their ids */
	VEC(struct fxt_string) objects;     /* likewise */
	VEC(struct fxt_string) files;
	struct map files_by_name; /* by the address of the decoder's string */
	struct arena texts;
	uint64_t n_strings; /* that were defined so far, and 1 */

	VEC(uint64_t) threads; /* by id of the track: how many were defined before it, and 1 */
	uint64_t n_threads;
	struct map processes; /* those that have a name */
};

/* --- strings ---------------------------------------------------------------------------------- */

static int put_string(struct fxt *fxt, uint16_t number, const char *text, size_t size)
{
	struct fxt_record record = { .n_words = 1 };

	fxt_record_text(&record, text, size);
	return fxt_record_put(&record, fxt->output, FXT_RECORD_STRING,
			      (uint64_t)size << 32 | (uint64_t)number << 16);
}

static int copy_string(struct fxt *fxt, const char *text, struct fxt_string *ret_string)
{
	char printable[OUTPUT_NAME_MAX];
	const size_t size = output_printable(printable, text, sizeof(printable));
	char *copy = arena_alloc(&fxt->texts, size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, printable, size);
	*ret_string = (struct fxt_string){ .text = copy, .size = (uint16_t)size };
	return 0;
}

/* Return: whether the number of a string that was defined then is still its own. */
static bool is_current(const struct fxt *fxt, uint64_t defined)
{
	return defined > 0 && fxt->n_strings - defined < STRINGS_MAX - _NAMES - STRINGS_MARGIN;
}

/* Give the string a number if it has none. @oldest gets lower if the string was defined earlier. */
static int refer(struct fxt *fxt, struct fxt_string *string, uint64_t *oldest)
{
	int r = 0;

	if (!is_current(fxt, string->defined)) {
		string->defined = ++fxt->n_strings;
		string->number = (uint16_t)(_NAMES + string->defined % (STRINGS_MAX + 1 - _NAMES));
		r = put_string(fxt, string->number, string->text, string->size);
	}
	if (string->defined < *oldest)
		*oldest = string->defined;
	return r;
}

/* Get the string of the object. Return: 0 or -ENOMEM. */
static int get_object(struct fxt *fxt, const struct ptd_object *object,
		      struct fxt_string **ret_string)
{
	*ret_string = vec_at(&fxt->objects, object->id, {});
	if (!*ret_string)
		return -ENOMEM;
	return (*ret_string)->text ? 0 : copy_string(fxt, object->name, *ret_string);
}

/* Get the index of the file of the source code. Return: 0 or -ENOMEM. */
static int get_file(struct fxt *fxt, const char *name, uint32_t *ret_file)
{
	struct fxt_string string;
	uint64_t number;
	int r = map_number(&fxt->files_by_name, (uintptr_t)name, fxt->files.n, &number);

	if (r > 0)
		r = copy_string(fxt, name, &string) < 0 ? -ENOMEM : vec_push(&fxt->files, string);
	*ret_file = (uint32_t)number;
	return r;
}

/* --- functions -------------------------------------------------------------------------------- */

static int make_function(struct fxt *fxt, const struct ptd_function *function,
			 struct fxt_function *f)
{
	struct ptd_position position;
	const int r = srcline_of_function(fxt->decoder, function, &position);

	if (r < 0)
		return r;
	f->file = VIEWTRACK_NONE;
	if (r > 0 && position.file) {
		f->line = position.line;
		if (get_file(fxt, position.file, &f->file) < 0)
			return -ENOMEM;
	}
	return copy_string(fxt, function->name, &f->name);
}

/* Make the beginning of the function's spans, with numbers that its strings have now. */
static int make_record(struct fxt *fxt, const struct ptd_function *function, struct fxt_function *f)
{
	struct fxt_string *object, *file = NULL;
	struct fxt_record record = { .n_words = 2 };
	int r;

	if (f->file != VIEWTRACK_NONE)
		file = &fxt->files.items[f->file];
	f->defined = UINT64_MAX;
	r = get_object(fxt, function->object, &object);
	if (r == 0)
		r = refer(fxt, &f->name, &f->defined);
	if (r == 0)
		r = refer(fxt, object, &f->defined);
	if (r == 0 && file)
		r = refer(fxt, file, &f->defined);
	if (r < 0)
		return r;
	fxt_record_arg(&record, FXT_ARG_POINTER, NAME_ADDRESS, function->address);
	fxt_record_small_arg(&record, FXT_ARG_STRING, NAME_OBJECT, object->number);
	if (file) {
		fxt_record_small_arg(&record, FXT_ARG_STRING, NAME_FILE, file->number);
		fxt_record_small_arg(&record, FXT_ARG_U32, NAME_LINE, f->line);
	}
	record.words[0] = htole64(fxt_event_bits(FXT_EVENT_BEGIN, 0, 0,
						 NAME_CATEGORIES + viewtrack_category_of(function),
						 f->name.number) |
				  FXT_RECORD_EVENT);
	memcpy(f->record, record.words, sizeof(f->record));
	f->n_words = (uint8_t)record.n_words;
	f->n_args = (uint8_t)record.n_args;
	return 0;
}

/* Get the function, with the beginning of its spans. Return: 0 or negative errno. */
static inline int get_function(struct fxt *fxt, const struct ptd_function *function,
			       struct fxt_function **ret_function)
{
	struct fxt_function *f = vec_at(&fxt->functions, function->id, {});
	int r = 0;

	if (!f)
		return -ENOMEM;
	*ret_function = f;
	if (!f->name.text)
		r = make_function(fxt, function, f);
	if (r == 0 && !is_current(fxt, f->defined))
		r = make_record(fxt, function, f);
	return r;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int put_object(struct fxt *fxt, enum fxt_object_type type, uint64_t koid, uint64_t process,
		      const char *name)
{
	struct fxt_record record = { .n_words = 1 };
	char printable[OUTPUT_NAME_MAX];
	const size_t size = output_printable(printable, name, sizeof(printable));

	fxt_record_word(&record, koid);
	fxt_record_text(&record, printable, size);
	if (type == FXT_OBJECT_THREAD)
		fxt_record_arg(&record, FXT_ARG_KOID, NAME_PROCESS, process);
	return fxt_record_put(&record, fxt->output, FXT_RECORD_KERNEL_OBJECT,
			      (uint64_t)record.n_args << 40 | (size ? FXT_INLINE | size : 0) << 24 |
				  (uint64_t)type << 16);
}

static int name_track(void *state, const struct viewtrack *track)
{
	struct fxt *fxt = state;
	const char *comm = viewtrack_comm(track);
	char name[VIEWTRACK_NAME];
	int r = 0;

	if (!vec_at(&fxt->threads, track->id, 0))
		return -ENOMEM;
	if (track->pid == track->tid || !map_get(&fxt->processes, track->pid)) {
		r = map_put(&fxt->processes, track->pid, 1);
		if (r == 0)
			r = put_object(fxt, FXT_OBJECT_PROCESS, track->pid, 0, comm);
	}
	return r < 0 ? r
		     : put_object(fxt, FXT_OBJECT_THREAD, track->tid, track->pid,
				  viewtrack_name(track, name));
}

/* Return: the number of the thread of the track. */
static inline uint8_t refer_thread(struct fxt *fxt, const struct viewtrack *track)
{
	uint64_t *defined = &fxt->threads.items[track->id];

	if (*defined == 0 || fxt->n_threads - *defined >= THREADS_MAX) {
		struct fxt_record record = { .n_words = 1 };

		*defined = ++fxt->n_threads;
		fxt_record_word(&record, track->pid);
		fxt_record_word(&record, track->tid);
		(void)fxt_record_put(&record, fxt->output, FXT_RECORD_THREAD,
				     (1 + *defined % THREADS_MAX) << 16);
	}
	return (uint8_t)(1 + *defined % THREADS_MAX);
}

/* --- spans ------------------------------------------------------------------------------------ */

#define SPAN_MAX 16 /* words of what begins or ends the span of a function */

/* Return: room for SPAN_MAX words; NULL: the output has failed. */
static inline uint64_t *begin_span(struct fxt *fxt)
{
	if (output_reserve(fxt->output, SPAN_MAX * sizeof(uint64_t)) < 0)
		return NULL;
	return (uint64_t *)(void *)(fxt->output->buffer + fxt->output->n_used);
}

/* The span has @n words and @n_args arguments, which the first word does not state yet. */
static inline void end_span(struct fxt *fxt, uint64_t *words, size_t n, unsigned int n_args,
			    uint8_t thread, uint64_t t)
{
	words[0] |= htole64((uint64_t)thread << 24 | (uint64_t)n_args << 20 | (uint64_t)n << 4);
	words[1] = htole64(t);
	fxt->output->n_used += n * sizeof(*words);
}

static int begin(void *state, const struct viewtrack *track, uint64_t t,
		 const struct open_frame *frame)
{
	struct fxt *fxt = state;
	const uint32_t how = NAME_HOWS + frame->how;
	struct fxt_function *f;
	unsigned int n_args;
	uint8_t thread;
	uint64_t *words;
	size_t n;
	int r;

	r = get_function(fxt, frame->function, &f);
	if (r < 0)
		return r;
	thread = refer_thread(fxt, track);
	words = begin_span(fxt);
	if (!words)
		return fxt->output->error;
	memcpy(words, f->record, sizeof(f->record));
	n = f->n_words;
	n_args = f->n_args;
	if (frame->how != PTD_CALL_BY_CALL) {
		words[n++] = fxt_small_arg(FXT_ARG_STRING, NAME_ENTERED_BY, how);
		n_args++;
	}
	if (frame->ambiguous) {
		words[n++] = fxt_small_arg(FXT_ARG_BOOL, NAME_AMBIGUOUS, 1);
		n_args++;
	}
	end_span(fxt, words, n, n_args, thread, t);
	return 0;
}

static int end(void *state, const struct viewtrack *track, uint64_t t, const struct ptd_call *leave)
{
	struct fxt *fxt = state;
	const uint8_t thread = refer_thread(fxt, track);
	uint64_t *words = begin_span(fxt);
	unsigned int n_args = 0;
	size_t n = 2;

	if (!words)
		return fxt->output->error;
	words[0] = htole64(FXT_EVENT_END << 16 | FXT_RECORD_EVENT);
	if (leave && fxt->has_insns) {
		words[n++] = htole64((uint64_t)NAME_INSTRUCTIONS << 16 | 2 << 4 | FXT_ARG_U64);
		words[n++] = htole64(leave->n_insns_total);
		n_args++;
	}
	if (leave && leave->how != PTD_CALL_BY_RETURN) {
		words[n++] = fxt_small_arg(FXT_ARG_STRING, NAME_LEFT_BY, NAME_HOWS + leave->how);
		n_args++;
	}
	end_span(fxt, words, n, n_args, thread, t);
	return 0;
}

/* --- marks ------------------------------------------------------------------------------------ */

/* Write an event of one of the fixed names, with the arguments that @record has. */
static int put_event(struct fxt *fxt, struct fxt_record *record, enum fxt_event_type type,
		     uint8_t thread, uint64_t t, uint16_t category, uint16_t name)
{
	record->words[1] = htole64(t);
	return fxt_record_put(record, fxt->output, FXT_RECORD_EVENT,
			      fxt_event_bits(type, record->n_args, thread, category, name));
}

static int begin_gap(void *state, const struct viewtrack *track, uint64_t t,
		     const struct ptd_mark *mark)
{
	struct fxt *fxt = state;
	const bool is_gap = mark->kind == PTD_MARK_GAP && mark->reason < _PTD_GAP_REASONS;
	struct fxt_record record = { .n_words = 2 };

	fxt_record_arg(&record, FXT_ARG_U64, NAME_BYTES, mark->n_bytes);
	if (mark->ip)
		fxt_record_arg(&record, FXT_ARG_POINTER, NAME_ADDRESS, mark->ip);
	return put_event(fxt, &record, FXT_EVENT_BEGIN, refer_thread(fxt, track), t,
			 NAME_CATEGORIES + VIEWTRACK_GAP,
			 (uint16_t)(is_gap ? NAME_GAPS + mark->reason : NAME_MARKS + mark->kind));
}

static int put_mark(void *state, const struct viewtrack *track, uint64_t t,
		    const struct ptd_mark *mark)
{
	struct fxt *fxt = state;
	struct fxt_record record = { .n_words = 2 };

	fxt_record_arg(&record, FXT_ARG_U64, NAME_VALUE, mark->value);
	fxt_record_arg(&record, FXT_ARG_U64, NAME_EXTRA, mark->extra);
	if (mark->ip)
		fxt_record_arg(&record, FXT_ARG_POINTER, NAME_ADDRESS, mark->ip);
	return put_event(fxt, &record, FXT_EVENT_INSTANT, refer_thread(fxt, track), t,
			 NAME_CATEGORIES + VIEWTRACK_MARK, (uint16_t)(NAME_MARKS + mark->kind));
}

static int put_noted(void *state, const struct viewtrack *track, uint64_t t,
		     const struct ptd_symbol *symbol, bool begins)
{
	struct fxt *fxt = state;
	struct fxt_record record = { .n_words = 2 };
	char name[OUTPUT_NAME_MAX];
	const int size = snprintf(name, sizeof(name), "%s", symbol->name);
	const size_t n = (size_t)size < sizeof(name) ? (size_t)size : sizeof(name) - 1;

	printable_clean(name, n);
	fxt_record_text(&record, name, n);
	return put_event(fxt, &record, begins ? FXT_EVENT_BEGIN : FXT_EVENT_INSTANT,
			 refer_thread(fxt, track), t, NAME_CATEGORIES + VIEWTRACK_NOTED,
			 (uint16_t)(FXT_INLINE | n));
}

static int put_signal(void *state, const struct viewtrack *track,
		      const struct viewtrack_signal *signal)
{
	struct fxt *fxt = state;
	struct fxt_record record = { .n_words = 2 };
	char name[40];
	const int size = snprintf(name, sizeof(name), "%ssignal %" PRIu32,
				  signal->is_fatal ? "killed by " : "", signal->signal);

	fxt_record_text(&record, name, (size_t)size);
	if (!signal->is_fatal) {
		fxt_record_small_arg(&record, FXT_ARG_I32, NAME_CODE, (uint32_t)signal->code);
		fxt_record_arg(&record, FXT_ARG_POINTER, NAME_HANDLER, signal->handler);
	}
	return put_event(fxt, &record, FXT_EVENT_INSTANT, refer_thread(fxt, track), signal->t,
			 NAME_CATEGORIES + VIEWTRACK_SIGNAL,
			 (uint16_t)(FXT_INLINE | (unsigned int)size));
}

static int put_snapshot(void *state, const struct viewtrack *track, uint64_t t)
{
	struct fxt_record record = { .n_words = 2 };

	return put_event(state, &record, FXT_EVENT_INSTANT, refer_thread(state, track), t,
			 NAME_CATEGORIES + VIEWTRACK_MARK, NAME_SNAPSHOT);
}

static int put_run(void *state, uint32_t cpu, uint64_t t, const struct viewtrack *track, bool is_in)
{
	struct fxt *fxt = state;
	struct fxt_record record = { .n_words = 2 };

	record.words[1] = htole64(t);
	fxt_record_word(&record, is_in ? 0 : track->tid);
	fxt_record_word(&record, is_in ? track->tid : 0);
	fxt_record_small_arg(&record, FXT_ARG_I32, is_in ? NAME_OUT_WEIGHT : NAME_IN_WEIGHT,
			     (uint32_t)WEIGHT_IDLE);
	return fxt_record_put(&record, fxt->output, FXT_RECORD_SCHEDULING,
			      UINT64_C(1) << 60 | (uint64_t)STATE_SUSPENDED << 36 |
				  (uint64_t)(cpu & 0xffff) << 20 | (uint64_t)record.n_args << 16);
}

static const struct viewtracks_ops ops = {
	.name = name_track,
	.begin = begin,
	.begin_gap = begin_gap,
	.end = end,
	.noted = put_noted,
	.mark = put_mark,
	.signal = put_signal,
	.snapshot = put_snapshot,
	.run = put_run,
};

/* --- its life --------------------------------------------------------------------------------- */

static void fxt_close(void *state)
{
	struct fxt *fxt = state;

	vec_deinit(&fxt->functions);
	vec_deinit(&fxt->objects);
	vec_deinit(&fxt->files);
	vec_deinit(&fxt->threads);
	map_deinit(&fxt->files_by_name);
	map_deinit(&fxt->processes);
	arena_deinit(&fxt->texts);
	viewtracks_deinit(&fxt->tracks);
}

static int put_name(struct fxt *fxt, uint16_t number, const char *before, const char *name)
{
	char text[OUTPUT_NAME_MAX];
	const int size = snprintf(text, sizeof(text), "%s%s", before, name);

	return put_string(fxt, number, text, (size_t)size);
}

static int put_names(struct fxt *fxt)
{
	int r = 0;

	for (uint16_t i = 1; r == 0 && i < NAME_CATEGORIES; i++)
		r = put_name(fxt, i, "", names[i]);
	for (uint16_t i = 0; r == 0 && i < _VIEWTRACK_CATEGORIES; i++)
		r = put_name(fxt, NAME_CATEGORIES + i, "", viewtrack_categories[i]);
	for (uint16_t i = 0; r == 0 && i < _PTD_CALL_HOWS; i++)
		r = put_name(fxt, NAME_HOWS + i, "", ptd_call_how_name(i));
	for (uint16_t i = 0; r == 0 && i < _PTD_MARK_KINDS; i++)
		r = put_name(fxt, NAME_MARKS + i, "", ptd_mark_kind_name(i));
	for (uint16_t i = 0; r == 0 && i < _PTD_GAP_REASONS; i++)
		r = put_name(fxt, NAME_GAPS + i, "gap: ", ptd_gap_reason_name(i));
	return r;
}

/* Write what comes first. */
static int put_head(struct fxt *fxt)
{
	static const char provider[] = "ptd";
	struct fxt_record info = { .n_words = 1 }, section = { .n_words = 1 },
			  start = { .n_words = 1 };
	const uint64_t magic = htole64(MAGIC);
	int r;

	fxt_record_text(&info, provider, strlen(provider));
	fxt_record_word(&start, TICKS_PER_SECOND);
	r = output_write(fxt->output, &magic, sizeof(magic));
	if (r == 0)
		r = fxt_record_put(&info, fxt->output, FXT_RECORD_METADATA,
				   (uint64_t)strlen(provider) << 52 | PROVIDER << 20 | 1 << 16);
	if (r == 0)
		r = fxt_record_put(&section, fxt->output, FXT_RECORD_METADATA,
				   PROVIDER << 20 | 2 << 16);
	if (r == 0)
		r = fxt_record_put(&start, fxt->output, FXT_RECORD_INITIALIZATION, 0);
	return r < 0 ? r : put_names(fxt);
}

static int fxt_open(void *state, const struct sink_config *config, struct output *output)
{
	struct fxt *fxt = state;

	fxt->output = output;
	if (config->positions != SINK_NO_POSITIONS)
		fxt->decoder = config->decoder;
	fxt->has_insns = !config->info->logs_calls;
	viewtracks_init(&fxt->tracks, &ops, config->info);
	return put_head(fxt);
}

static int fxt_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	return viewtracks_finish(state);
}

static const struct sink_option options[] = { SINK_SIEVE_OPTIONS, {} };

const struct sink_ops sink_fxt = {
	.name = "fxt",
	.help = "Fuchsia trace format, for Perfetto and magic-trace's viewer",
	.options = options,
	.is_sieved = true,
	.state_size = sizeof(struct fxt),
	.open = fxt_open,
	.sideband = viewtracks_sideband,
	.batch = viewtracks_batch,
	.calls = viewtracks_calls,
	.mark = viewtracks_mark,
	.finish = fxt_finish,
	.omission = viewtracks_omission,
	.close = fxt_close,
};
