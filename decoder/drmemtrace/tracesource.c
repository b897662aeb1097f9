/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/tracesource.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "decoder/drmemtrace/blockstore.h"
#include "decoder/drmemtrace/naming.h"
#include "decoder/drmemtrace/tracedir.h"
#include "decoder/drmemtrace/tracefile.h"
#include "decoder/util/batchsource.h"
#include "decoder/util/heap.h"
#include "util/map.h"
#include "util/message.h"
#include "util/vec.h"

/* How many runs a batch has at most. */
#define BATCH_RUNS 4096

#define US_PER_S UINT64_C(1000000)
#define IDLE     (UINT64_C(1) << 32)

struct tracesource {
	struct batchsource source; /* the first field */
	struct blockstore store;
	struct naming *naming;
	VEC(struct tracefile) files; /* in the order of their names */
	uint64_t epoch_us;           /* µs since 1601: time 0 of the stream */

	/* The files that have not ended, the one whose piece comes first on top. */
	VEC(struct tracefile *) heap;
	struct tracefile *current; /* of the slice; NULL: none */
	bool in_piece;             /* the piece of the file on top was begun, and goes on */

	struct ptd_slice slice;
	struct map spaces; /* pid → id */
	struct tracefile_out out;
};

static struct tracesource *of(struct batchsource *source)
{
	return (struct tracesource *)source;
}

/* --- its files -------------------------------------------------------------------------------- */

static int add_file(struct tracesource *source, struct tracedir_entry *entry, char **reterr_message)
{
	struct tracefile *file;
	int r;

	if (entry->kind == TRACEDIR_ODD)
		return message_set(reterr_message, -EBADMSG,
				   "%s: no regular file, but all there belongs to the trace",
				   entry->path);
	if (entry->kind != TRACEDIR_TRACE)
		return 0;
	r = vec_reserve(&source->files, 1);
	if (r < 0)
		return r;
	file = &source->files.items[source->files.n++];
	tracefile_init(file, TAKE(entry->path), &source->store, source->naming);
	return 0;
}

static int find_files(struct tracesource *source, const char *dir, char **reterr_message)
{
	_cleanup_(tracedir_deinit) struct tracedir files = {};
	_cleanup_(freep) char *path = NULL;
	int r;

	r = tracedir_read(dir, &files, &path);
	if (r < 0)
		return path ? message_set(reterr_message, r, "%s: %s", path, strerror(-r)) : r;
	for (size_t i = 0; i < files.entries.n && r == 0; i++)
		r = add_file(source, &files.entries.items[i], reterr_message);
	if (r == 0 && source->files.n == 0)
		r = message_set(reterr_message, -ENOENT, "%s: there is no trace file", files.path);
	return r;
}

/* Read where each file begins. */
static int peek_files(struct tracesource *source, char **reterr_message)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < source->files.n; i++) {
		struct tracefile *file = &source->files.items[i];
		const int r = tracefile_open(file, reterr_message);

		if (r < 0)
			return r;
		tracefile_close(file);
		if (file->time_us && file->time_us < first)
			first = file->time_us;
	}
	if (first == UINT64_MAX || first < TRACE_TIME_UNIX + US_PER_S)
		return 0;
	/* The stream begins behind 1 s: 0 would be no time. */
	first -= TRACE_TIME_UNIX;
	first -= first % US_PER_S + US_PER_S;
	source->epoch_us = TRACE_TIME_UNIX + first;
	source->source.realtime_offset_ns = (int64_t)(first * 1000);
	return 0;
}

/* --- the order of the pieces ------------------------------------------------------------------ */

static bool comes_before(const struct tracefile *a, const struct tracefile *b)
{
	if (a->time_us != b->time_us)
		return a->time_us < b->time_us;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu;
	return a < b;
}

/* The file on top has ended. */
static void drop_top(struct tracesource *source)
{
	tracefile_close(source->heap.items[0]);
	heap_drop(&source->heap, comes_before);
}

static int start_stream(struct batchsource *batches, char **reterr_message)
{
	struct tracesource *source = of(batches);
	int r = 0;

	batchsource_reset(batches);
	source->heap.n = 0;
	source->current = NULL;
	source->in_piece = false;
	for (size_t i = 0; i < source->files.n && r == 0; i++) {
		struct tracefile *file = &source->files.items[i];

		/* Those that have been read have moved on. */
		r = tracefile_open(file, reterr_message);
		tracefile_close(file);
		if (r == 0)
			r = vec_push(&source->heap, file);
	}
	heap_make(&source->heap, comes_before);
	return r;
}

/* --- the stream ------------------------------------------------------------------------------- */

/*
 * Ids of the stream have 32 bits. The format has no thread 0, so we write the idle threads of the
 * CPUs with ids from IDLE on, and unknown ones with larger ids. DynamoRIO has all ones for idle.
 */
static uint32_t shown_id(uint64_t id)
{
	return id < PTD_ID_UNKNOWN ? (uint32_t)id : id >> 32 == IDLE >> 32 ? 0 : PTD_ID_UNKNOWN;
}

static uint32_t shown_cpu(uint64_t cpu)
{
	return cpu < UINT32_MAX ? (uint32_t)cpu : UINT32_MAX;
}

static int find_space(struct tracesource *source, uint64_t pid, uint32_t *ret_space)
{
	uint64_t space;
	const int r = map_number(&source->spaces, pid, source->spaces.n_used, &space);

	*ret_space = (uint32_t)space;
	return r < 0 ? r : 0;
}

static uint64_t time_of(const struct tracesource *source, const struct tracefile *file)
{
	return file->time_us > source->epoch_us ? (file->time_us - source->epoch_us) * 1000 : 0;
}

/* Return: whether the piece of @file goes on with the current slice. */
static bool is_of_slice(const struct tracesource *source, const struct tracefile *file)
{
	return source->current == file && source->slice.cpu == shown_cpu(file->cpu) &&
	       source->slice.tid == shown_id(file->tid) && source->slice.pid == shown_id(file->pid);
}

static int begin_slice(struct tracesource *source, struct tracefile *file)
{
	source->current = file;
	source->slice = (struct ptd_slice){
		.cpu = shown_cpu(file->cpu),
		.pid = shown_id(file->pid),
		.tid = shown_id(file->tid),
		.t0 = time_of(source, file),
		.comm = file->comm,
	};
	return find_space(source, file->pid, &source->slice.space);
}

static int count_batch(struct tracesource *source)
{
	const struct tracefile_out *out = &source->out;
	struct batchsource_count count = {
		.cpu = source->slice.cpu,
		.n_insns = out->n_insns,
		.t_first = source->slice.t0,
		.t_last = out->runs.n ? out->runs.items[out->runs.n - 1].t : source->slice.t0,
	};

	static_assert(sizeof(count.n_gaps) == sizeof(out->n_gaps), "all reasons");
	memcpy(count.n_gaps, out->n_gaps, sizeof(count.n_gaps));
	return batchsource_count(&source->source, &count);
}

/* Read pieces, as long as they are of the slice, until the batch is full. */
static int fill_batch(struct tracesource *source, char **reterr_message)
{
	struct tracefile_out *out = &source->out;
	int r = 0;

	while (r >= 0 && source->heap.n > 0 && out->runs.n < out->n_runs_max &&
	       out->marks.n < out->n_runs_max) {
		struct tracefile *file = source->heap.items[0];

		if (!source->in_piece && !is_of_slice(source, file))
			break;
		r = file->container ? 0 : tracefile_open(file, reterr_message);
		if (r == 0)
			r = tracefile_read(file, source->epoch_us, out, reterr_message);
		source->in_piece = r == 0;
		if (r > 0 && file->ended)
			drop_top(source);
		else if (r > 0)
			heap_sink(&source->heap, 0, comes_before);
	}
	return r < 0 ? r : 0;
}

static int next_batch(struct batchsource *batches, struct ptd_batch *ret_batch,
		      struct ptd_slice **ret_slice, bool *ret_new, char **reterr_message)
{
	struct tracesource *source = of(batches);
	struct tracefile_out *out = &source->out;
	int r = 0;

	*ret_new = false;
	out->runs.n = out->marks.n = 0;
	out->n_insns = 0;
	memset(out->n_gaps, 0, sizeof(out->n_gaps));
	while (r == 0 && out->runs.n == 0 && out->marks.n == 0) {
		if (source->heap.n == 0)
			return 1;
		if (!source->in_piece && !is_of_slice(source, source->heap.items[0])) {
			r = begin_slice(source, source->heap.items[0]);
			*ret_new = true;
		}
		if (r == 0)
			r = fill_batch(source, reterr_message);
	}
	if (r == 0)
		r = count_batch(source);
	if (r < 0)
		return r;
	*ret_batch = (struct ptd_batch){
		.slice = &source->slice,
		.runs = out->runs.items,
		.n_runs = out->runs.n,
		.marks = out->marks.items,
		.n_marks = out->marks.n,
	};
	ret_batch->symbols = naming_symbols(source->naming, &ret_batch->n_symbols);
	*ret_slice = &source->slice;
	return 0;
}

/* --- its end and beginning -------------------------------------------------------------------- */

static void free_source(struct batchsource *batches)
{
	struct tracesource *source = of(batches);

	vec_deinit_each(&source->files, file, tracefile_deinit(file));
	vec_deinit(&source->heap);
	vec_deinit(&source->out.runs);
	vec_deinit(&source->out.marks);
	map_deinit(&source->spaces);
	(void)naming_free(source->naming);
	blockstore_deinit(&source->store);
	free(source);
}

static const struct batchsource_ops source_ops = {
	.start = start_stream,
	.next = next_batch,
	.free = free_source,
};

int tracesource_new(const char *dir, struct objects *objects, struct resolver *resolver,
		    struct batchsource **ret_source, char **reterr_message)
{
	struct tracesource *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	source->source.ops = &source_ops;
	source->source.clock = PTD_CLOCK_NS;
	source->out.n_runs_max = BATCH_RUNS;
	r = naming_new(dir, objects, resolver, &source->naming, reterr_message);
	if (r == 0)
		r = find_files(source, dir, reterr_message);
	if (r == 0)
		r = peek_files(source, reterr_message);
	if (r < 0) {
		batchsource_free(&source->source);
		return r;
	}
	*ret_source = &source->source;
	return 0;
}
