/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Writer
 *
 * Batches are put into parcels; a large batch is cut into several. Runs are copied, unless the
 * batch has a hold of them (decoder/util/hold.h), which the parcel then keeps. A parcel that is
 * full is a task: a thread expands its batches for all sinks. Parcels lie in a ring in the order of
 * the stream; the calling thread has the sinks write the oldest as soon as it is expanded, and does
 * the threads' work while the ring is full. So the ring bounds the memory, and an output that is
 * slow stops the decoder.
 *
 * What is made of a parcel should be so little that it is still in the cache of the CPU when it is
 * written. So the number of runs in a parcel follows from how many bytes the last parcels became.
 * All runs of a parcel were decoded by one thread, which also expands them, if it has time: on most
 * machines it costs more to get bytes out of the cache of another CPU than to decode them.
 */

#include "decoder/sink/sink.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/worker.h"
#include "decoder/util/hold.h"
#include "decoder/util/threads.h"
#include "util/vec.h"

/* How many bytes are to be made of a parcel. */
#define PARCEL_BYTES ((size_t)512 << 10)

/* A parcel that has its number of runs, or of batches, is full. */
#define PARCEL_RUNS_MIN ((size_t)256)
#define PARCEL_RUNS_MAX ((size_t)8192)
#define PARCEL_BATCHES  1024

/* One is expanded, one waits for a thread, one is written or filled. */
#define PARCELS_PER_THREAD 3

/* A batch in a parcel. */
struct entry {
	struct ptd_slice slice;
	struct ptd_batch batch;       /* its hold: has this entry as a user; or NULL */
	size_t first_run, first_mark; /* in the parcel; of runs that were copied */
};

/*
 * What is made of a parcel: bytes for each sink. A thread takes those that it wrote before, if it
 * can, because memory that is in the cache of another CPU costs more than filling it.
 */
struct product {
	struct product *next; /* of those that are not in use */
	size_t thread;        /* that wrote it last */
	struct sink_bytes bytes[];
};

struct parcel {
	struct task task;
	struct writer *writer;
	VEC(struct entry) entries;
	size_t n_runs;            /* of all entries */
	size_t thread;            /* that wrote these: the one that decoded or copied them */
	VEC(struct ptd_run) runs; /* those that were copied */
	VEC(struct ptd_mark) marks;
	struct product *product; /* NULL: not expanded yet */
	size_t n_bytes;          /* in the product */

	/* The error of expanding, and the sink whose it is. */
	int r;
	size_t failed;
};

struct writer {
	struct ptd_threads *threads; /* borrowed */
	struct sink **sinks;         /* borrowed, but for the array */
	size_t n_sinks;
	struct sink_worker *workers; /* n_sinks for each thread */

	/* The ring: @n_waiting from @oldest on are tasks; the next one is being filled. */
	struct parcel *parcels;
	size_t n_parcels, oldest, n_waiting;
	size_t n_runs_max; /* of a parcel */

	pthread_mutex_t mutex;  /* of what follows */
	struct product **spare; /* by thread: what is not in use */
	size_t n_products;

	int r; /* the first error */
	struct sink *failed;
};

DEFINE_CLEANUP(struct writer *, writer_free);

/* --- its life --------------------------------------------------------------------------------- */

static int make_workers(struct writer *w, size_t n_threads)
{
	w->workers = calloc(n_threads * w->n_sinks, sizeof(*w->workers));
	if (!w->workers)
		return -ENOMEM;
	for (size_t i = 0; i < n_threads * w->n_sinks; i++) {
		const struct sink *sink = w->sinks[i % w->n_sinks];
		const int r = sink_expands(sink) ? sink_worker_init(&w->workers[i], sink) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int make_parcels(struct writer *w, size_t n)
{
	w->parcels = calloc(n, sizeof(*w->parcels));
	if (!w->parcels)
		return -ENOMEM;
	for (; w->n_parcels < n; w->n_parcels++)
		w->parcels[w->n_parcels].writer = w;
	w->spare = calloc(threads_n(w->threads), sizeof(struct product *));
	return w->spare ? 0 : -ENOMEM;
}

/* Return: whether threads have something to do. */
static bool has_work(const struct writer *w)
{
	for (size_t i = 0; i < w->n_sinks; i++)
		if (sink_expands(w->sinks[i]))
			return threads_n(w->threads) > 1;
	return false;
}

int writer_new(struct ptd_threads *threads, struct sink *const *sinks, size_t n_sinks,
	       struct writer **ret_writer)
{
	_cleanup_(writer_freep) struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	(void)pthread_mutex_init(&w->mutex, NULL);
	w->threads = threads;
	w->sinks = calloc(n_sinks ? n_sinks : 1, sizeof(*w->sinks));
	if (!w->sinks)
		return -ENOMEM;
	memcpy(w->sinks, sinks, n_sinks * sizeof(*w->sinks));
	w->n_sinks = n_sinks;
	w->n_runs_max = PARCEL_RUNS_MIN;
	if (has_work(w)) {
		r = make_workers(w, threads_n(threads));
		if (r == 0)
			r = make_parcels(w, PARCELS_PER_THREAD * threads_n(threads));
		if (r < 0)
			return r;
	}
	*ret_writer = TAKE(w);
	return 0;
}

/* Return: the thread that writes the runs that the parcel gets of @batch. */
static size_t thread_of(const struct ptd_batch *batch)
{
	return hold_has(batch) ? batch->hold->thread : 0;
}

/* Make the parcel empty, so that it can be filled. */
static void empty_parcel(struct parcel *parcel)
{
	for (size_t i = 0; i < parcel->entries.n; i++)
		hold_unref(parcel->entries.items[i].batch.hold);
	parcel->entries.n = parcel->runs.n = parcel->marks.n = parcel->n_runs = 0;
}

static void free_product(struct product *product, size_t n_sinks)
{
	for (size_t i = 0; product && i < n_sinks; i++)
		sink_bytes_deinit(&product->bytes[i]);
	free(product);
}

static void free_parcel(struct parcel *parcel, size_t n_sinks)
{
	empty_parcel(parcel);
	free_product(parcel->product, n_sinks);
	vec_deinit(&parcel->entries);
	vec_deinit(&parcel->runs);
	vec_deinit(&parcel->marks);
}

struct writer *writer_free(struct writer *writer)
{
	if (!writer)
		return NULL;
	for (size_t i = 0; i < writer->n_waiting; i++)
		threads_wait(writer->threads,
			     &writer->parcels[(writer->oldest + i) % writer->n_parcels].task);
	for (size_t i = 0; i < writer->n_parcels; i++)
		free_parcel(&writer->parcels[i], writer->n_sinks);
	free(writer->parcels);
	for (size_t i = 0; writer->spare && i < threads_n(writer->threads); i++) {
		while (writer->spare[i]) {
			struct product *product = writer->spare[i];

			writer->spare[i] = product->next;
			free_product(product, writer->n_sinks);
		}
	}
	free(writer->spare);
	for (size_t i = 0; writer->workers && i < threads_n(writer->threads) * writer->n_sinks; i++)
		sink_worker_deinit(&writer->workers[i]);
	free(writer->workers);
	free(writer->sinks);
	(void)pthread_mutex_destroy(&writer->mutex);
	free(writer);
	return NULL;
}

/* --- parcels ---------------------------------------------------------------------------------- */

/* Copy the marks before the runs of @batch from @first on, before @end; behind the last run, the
 * marks that are left. */
static int copy_marks(struct parcel *parcel, const struct ptd_batch *batch, size_t first,
		      size_t end)
{
	int r = 0;

	for (size_t i = 0; i < batch->n_marks && r == 0; i++) {
		struct ptd_mark mark = batch->marks[i];

		if (mark.run < first || (mark.run >= end && end < batch->n_runs))
			continue;
		mark.run -= first;
		r = vec_push(&parcel->marks, mark);
	}
	return r;
}

/* Put the runs of @batch from @first on, before @end, into the parcel, and the marks of these. */
static int add_entry(struct parcel *parcel, const struct ptd_batch *batch, size_t first, size_t end)
{
	const bool is_held = hold_has(batch);
	struct entry entry = {
		.slice = *batch->slice,
		.batch = *batch,
		.first_run = parcel->runs.n,
		.first_mark = parcel->marks.n,
	};
	int r;

	entry.batch.hold = NULL;
	entry.batch.runs += first;
	entry.batch.n_runs = end - first;
	r = is_held ? 0 : vec_reserve(&parcel->runs, end - first);
	if (r == 0)
		r = copy_marks(parcel, batch, first, end);
	entry.batch.n_marks = parcel->marks.n - entry.first_mark;
	if (r == 0)
		r = vec_push(&parcel->entries, entry);
	if (r < 0)
		return r;
	if (is_held) {
		parcel->entries.items[parcel->entries.n - 1].batch.hold = hold_ref(batch->hold);
	} else if (end > first) {
		memcpy(parcel->runs.items + parcel->runs.n, batch->runs + first,
		       (end - first) * sizeof(*batch->runs));
		parcel->runs.n += end - first;
	}
	parcel->n_runs += end - first;
	return 0;
}

static struct product *new_product(size_t n_sinks)
{
	struct product *product = calloc(1, sizeof(*product) + n_sinks * sizeof(product->bytes[0]));

	for (size_t i = 0; product && i < n_sinks; i++)
		product->bytes[i] = sink_bytes_none();
	return product;
}

/*
 * Return: the thread whose product @thread takes: itself; or any that has one, if there are as
 *         many as there may be; or the number of threads, if a new one is to be made.
 */
static size_t choose_product(struct writer *w, size_t thread)
{
	size_t i = thread;

	if (!w->spare[thread] && w->n_products < w->n_parcels) {
		w->n_products++;
		return threads_n(w->threads);
	}
	/* Those in use are not more than the parcels. */
	while (!w->spare[i])
		i = (i + 1) % threads_n(w->threads);
	return i;
}

/* Return: an empty product; NULL if there is no memory. */
static struct product *take_product(struct writer *w, size_t thread)
{
	struct product *product = NULL;
	size_t from;

	(void)pthread_mutex_lock(&w->mutex);
	from = choose_product(w, thread);
	if (from < threads_n(w->threads)) {
		product = w->spare[from];
		w->spare[from] = product->next;
	}
	(void)pthread_mutex_unlock(&w->mutex);
	if (product || (product = new_product(w->n_sinks))) {
		product->thread = thread;
		return product;
	}
	(void)pthread_mutex_lock(&w->mutex);
	w->n_products--;
	(void)pthread_mutex_unlock(&w->mutex);
	return NULL;
}

/* The product of the parcel has been written. */
static void give_back_product(struct writer *w, struct parcel *parcel)
{
	struct product *product = TAKE(parcel->product);

	(void)pthread_mutex_lock(&w->mutex);
	product->next = w->spare[product->thread];
	w->spare[product->thread] = product;
	(void)pthread_mutex_unlock(&w->mutex);
}

/* Expand the parcel for all sinks. */
static int expand(struct parcel *parcel, size_t thread)
{
	const struct writer *w = parcel->writer;
	struct sink_worker *workers = w->workers + thread * w->n_sinks;
	int r;

	for (size_t i = 0; i < parcel->entries.n; i++) {
		for (size_t k = 0; k < w->n_sinks; k++) {
			if (!workers[k].sink)
				continue;
			parcel->failed = k;
			r = sink_worker_expand(&workers[k], &parcel->entries.items[i].batch,
					       &parcel->product->bytes[k]);
			if (r < 0)
				return r;
		}
	}
	parcel->n_bytes = 0;
	for (size_t k = 0; k < w->n_sinks; k++)
		parcel->n_bytes += parcel->product->bytes[k].output.n_used;
	return 0;
}

/* A thread's task. */
static void expand_parcel(struct task *task, size_t thread)
{
	struct parcel *parcel = (struct parcel *)((char *)task - offsetof(struct parcel, task));

	parcel->failed = 0;
	parcel->product = take_product(parcel->writer, thread);
	parcel->r = parcel->product ? expand(parcel, thread) : -ENOMEM;
}

/* The parcel that is being filled has been filled: its arrays do not move any more. */
static void close_parcel(struct writer *w, struct parcel *parcel)
{
	for (size_t i = 0; i < parcel->entries.n; i++) {
		struct entry *entry = &parcel->entries.items[i];

		entry->batch.slice = &entry->slice;
		if (!entry->batch.hold)
			entry->batch.runs = parcel->runs.items + entry->first_run;
		entry->batch.marks = parcel->marks.items + entry->first_mark;
	}
	parcel->r = 0;
	parcel->task.run = expand_parcel;
	parcel->task.near = 1 + parcel->thread;
	threads_add(w->threads, &parcel->task);
	w->n_waiting++;
}

static int fail(struct writer *w, size_t sink, int r)
{
	w->failed = w->sinks[sink];
	return w->r = r;
}

/* Write one batch of a parcel. */
static int write_entry(struct writer *w, struct parcel *parcel, const struct entry *entry)
{
	for (size_t k = 0; k < w->n_sinks; k++) {
		const int r =
		    sink_write(w->sinks[k], &entry->batch,
			       sink_expands(w->sinks[k]) ? &parcel->product->bytes[k] : NULL);

		if (r < 0)
			return fail(w, k, r);
	}
	return 0;
}

/* Find out how many runs make a parcel of PARCEL_BYTES. */
static void adapt(struct writer *w, const struct parcel *parcel)
{
	const size_t n_bytes = parcel->n_bytes + parcel->n_runs;

	if (parcel->n_runs > 0)
		w->n_runs_max = PARCEL_BYTES * parcel->n_runs / n_bytes;
	if (w->n_runs_max < PARCEL_RUNS_MIN)
		w->n_runs_max = PARCEL_RUNS_MIN;
	if (w->n_runs_max > PARCEL_RUNS_MAX)
		w->n_runs_max = PARCEL_RUNS_MAX;
}

/* Write the oldest parcel, which has been expanded, and make room for another. */
static int write_oldest(struct writer *w)
{
	struct parcel *parcel = &w->parcels[w->oldest];
	int r = parcel->r < 0 ? fail(w, parcel->failed, parcel->r) : 0;

	adapt(w, parcel);
	for (size_t i = 0; i < parcel->entries.n && r == 0; i++)
		r = write_entry(w, parcel, &parcel->entries.items[i]);
	if (r == 0)
		give_back_product(w, parcel);
	empty_parcel(parcel);
	w->oldest = (w->oldest + 1) % w->n_parcels;
	w->n_waiting--;
	return r;
}

/* --- the stream ------------------------------------------------------------------------------- */

/* One thread: expand and write the batch itself. */
static int write_batch(struct writer *w, const struct ptd_batch *batch)
{
	for (size_t i = 0; i < w->n_sinks; i++) {
		const int r = sink_batch(w->sinks[i], batch);

		if (r < 0)
			return fail(w, i, r);
	}
	return 0;
}

/* Return: the parcel that is being filled. */
static struct parcel *last_parcel(struct writer *w)
{
	return &w->parcels[(w->oldest + w->n_waiting) % w->n_parcels];
}

/* Write what has been expanded; wait for it if no parcel is free. */
static int write_ready(struct writer *w)
{
	int r = 0;

	while (r == 0 && w->n_waiting > 0) {
		const struct task *oldest = &w->parcels[w->oldest].task;

		if (w->n_waiting == w->n_parcels)
			threads_wait(w->threads, oldest);
		if (!threads_is_done(w->threads, oldest))
			break;
		r = write_oldest(w);
	}
	return r;
}

/* Write all parcels. */
static int write_parcels(struct writer *w)
{
	int r = w->r;

	if (last_parcel(w)->entries.n > 0)
		close_parcel(w, last_parcel(w));
	while (r == 0 && w->n_waiting > 0) {
		threads_wait(w->threads, &w->parcels[w->oldest].task);
		r = write_oldest(w);
	}
	return r;
}

int writer_batch(struct writer *writer, const struct ptd_batch *batch)
{
	size_t first = 0, end;
	int r = writer->r;

	if (r == 0 && writer->n_parcels == 0)
		return write_batch(writer, batch);
	while (r == 0) {
		struct parcel *parcel = last_parcel(writer);

		if (parcel->n_runs > 0 && parcel->thread != thread_of(batch)) {
			close_parcel(writer, parcel);
			r = write_ready(writer);
			continue;
		}
		parcel->thread = thread_of(batch);
		end = first + writer->n_runs_max - parcel->n_runs;
		end = end < batch->n_runs ? end : batch->n_runs;
		r = add_entry(parcel, batch, first, end);
		if (r < 0)
			return writer->r = r;
		if (parcel->n_runs >= writer->n_runs_max || parcel->entries.n >= PARCEL_BATCHES) {
			close_parcel(writer, parcel);
			r = write_ready(writer);
		}
		if (end == batch->n_runs)
			break;
		first = end;
	}
	return r;
}

int writer_logged(struct writer *writer, const struct ptd_logged *logged)
{
	int r = writer->r;

	/* A log has no batches, which could be in parcels. */
	for (size_t i = 0; i < writer->n_sinks && r == 0; i++) {
		r = sink_logged(writer->sinks[i], logged);
		if (r < 0)
			return fail(writer, i, r);
	}
	return r;
}

int writer_flush(struct writer *writer)
{
	return writer->r < 0 || writer->n_parcels == 0 ? writer->r : write_parcels(writer);
}

struct sink *writer_failed(const struct writer *writer)
{
	return writer->failed;
}
