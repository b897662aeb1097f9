/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libptdecode: an input that was opened (session.h), its lanes (lanes.h), and what of them is asked
 * for (extract.h) become the stream. */

#include "decoder/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/codemap.h"
#include "decoder/corestack.h"
#include "decoder/image/cache.h"
#include "decoder/image/objects.h"
#include "decoder/overlay.h"
#include "decoder/probes.h"
#include "decoder/session.h"
#include "decoder/sideband/sidebandrecord.h"
#include "decoder/sideband/timeline.h"
#include "decoder/stream/ahead.h"
#include "decoder/stream/extract.h"
#include "decoder/stream/lanes.h"
#include "decoder/stream/timerange.h"
#include "decoder/symbol/resolver.h"
#include "decoder/symbol/source.h"
#include "decoder/trace/trace.h"
#include "decoder/util/batchsource.h"
#include "decoder/util/spill.h"
#include "ptd/calls.h"
#include "util/message.h"

/* How long the first window is in which the last instructions are looked for, in ns or ticks. */
#define LAST_WINDOW (UINT64_C(1) << 17)

/* The id of a slice that the caller was given nothing of yet. */
#define NO_SLICE UINT64_MAX

struct ptd_decoder {
	struct session session;
	struct codemap codemap;
	struct probes probes;
	struct corestacks *core;         /* NULL: there is no core file */
	pthread_mutex_t positions_mutex; /* held by the thread that asks for source positions */

	int r;         /* of what failed first; 0: nothing did */
	char *message; /* that goes with it */

	struct cache *cache;
	struct lanes lanes; /* none if the input has batches */

	struct extract *extract;       /* NULL: all is asked for */
	struct extract_counts *counts; /* of the lanes, or of the source's CPUs */
	struct ptd_slice *given_slice; /* of the batch that the caller has */
	uint64_t n_slices;
	struct ptd_logged given;   /* likewise; without calls, if the input is no log */
	size_t next_record;        /* index of the next sideband record to be shown */
	struct ptd_sideband shown; /* the record that the caller has */

	struct ptd_cpu_stats *cpu_stats;
	size_t n_cpus; /* of the source: that there is room for */
	uint64_t n_gaps[_PTD_GAP_REASONS];
	uint64_t gap_bytes[_PTD_GAP_REASONS];
	uint64_t n_events; /* marks of the overlay that were given out */
	struct ptd_stats stats;
};

DEFINE_CLEANUP(struct ptd_decoder *, ptd_decoder_free);

static int annotate(void *userdata, const struct object *object, const struct ptd_block *block,
		    struct ptd_insn *insns)
{
	struct ptd_decoder *d = userdata;
	struct ptd_block *own = (struct ptd_block *)(uintptr_t)block;
	uint32_t symbol = PTD_NO_SYMBOL;
	uint64_t end = block->address;
	int r;

	for (size_t i = 0; i < block->n_insns; i++) {
		const uint64_t address = block->address + insns[i].offset;

		if (address >= end) {
			r = resolver_find(d->session.resolver, object->symbols, address, &symbol,
					  &end);
			if (r < 0)
				return r;
		}
		insns[i].symbol = symbol;
	}
	return probes_look_at(&d->probes, object, block, &own->has_probes);
}

/* --- the part that is asked for --------------------------------------------------------------- */

/* Find out when the PT ends. Return: 0 and @ret_end, 0 if that is not known; or negative errno. */
static int find_end(const struct ptd_decoder *d, const struct ptd_options *o, uint64_t *ret_end,
		    char **reterr_message)
{
	const struct engine_config config = session_engine_config(&d->session, o);
	const int r = ptend_find(d->session.trace, &config, ret_end);

	return r < 0 ? session_check(&d->session, r, reterr_message) ?: r : 0;
}

/* Ask for the times that the user wrote. */
static int set_times(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	const char *text = o->part.time;
	struct ptd_info *info = &d->session.info;
	struct timerange_clock clock = { .clock = info->clock,
					 .realtime_offset_ns = info->realtime_offset_ns };
	struct timerange range;
	int r = 0;

	if (clock.clock == PTD_CLOCK_NONE)
		return message_set(reterr_message, -EINVAL, "time \"%s\": the input has no time",
				   text);
	if (timerange_needs_end(text))
		r = find_end(d, o, &clock.end, reterr_message);
	if (r < 0)
		return r;
	r = timerange_parse(text, &clock, &range);
	if (r == -ENODATA)
		return message_set(reterr_message, -EINVAL,
				   "time \"%s\": the input does not state %s", text,
				   clock.end ? "the time of day" : "when its PT ends");
	if (r < 0)
		return message_set(reterr_message, -EINVAL,
				   "time \"%s\": expected FROM,TO, each such as 12345.678, -5ms, "
				   "2026-11-22 21:02:03 or nothing",
				   text);
	extract_set_times(d->extract, range.from, range.to);
	if (info->snapshot_taken < range.from || info->snapshot_taken >= range.to)
		info->snapshot_taken = 0;
	return 0;
}

/* Leave out PT of a later time than the one until which all of it is complete. */
static int cut_end(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	const struct engine_config config = session_engine_config(&d->session, o);
	const int r = ptend_cut(d->session.trace, &config);

	return r < 0 ? session_check(&d->session, r, reterr_message) ?: r : 0;
}

/* Return: the processes that are asked for because the snapshot is about them; NULL: none. */
static const struct map *scope_of(const struct ptd_decoder *d, const struct ptd_options *o)
{
	const struct ptd_part *part = &o->part;
	const struct trace *trace = d->session.trace;
	const bool names_others = part->n_pids > 0 || part->n_tids > 0 || part->n_comms > 0;

	return trace && trace->facts.has_scope && !o->all_processes && !names_others
		   ? &trace->facts.scope
		   : NULL;
}

static int make_extract(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	const struct map *scope = scope_of(d, o);
	int r;

	if (!extract_is_part(&o->part) && !scope)
		return 0;
	if (o->part.last && d->session.info.logs_calls)
		return message_set(reterr_message, -EINVAL,
				   "%s: has no instructions, and the last ones are asked for",
				   o->input);
	r = extract_new(&o->part, scope, d->session.source ? NULL : d->session.timeline,
			&d->extract);
	return r == 0 && o->part.time ? set_times(d, o, reterr_message) : r;
}

static int make_lanes(struct ptd_decoder *d, const struct ptd_options *o,
		      const struct engine_ops *engine, uint64_t cut_size, char **reterr_message)
{
	const size_t n = d->session.trace->n_queues;
	struct lanes_config config = {
		.lane = { .trace = d->session.trace,
			  .timeline = d->session.timeline,
			  .engine = engine,
			  .engine_config = session_engine_config(&d->session, o),
			  .extract = d->extract,
			  .cut_size = cut_size },
		.threads = o->threads,
	};

	if (n > LANES_MAX)
		return message_set(reterr_message, -EFBIG,
				   "%s: has %zu AUX buffers; %d at the most", o->input, n,
				   LANES_MAX);
	config.lane.engine_config.cache = d->cache;
	d->cpu_stats = calloc(n ? n : 1, sizeof(*d->cpu_stats));
	d->counts = calloc(n ? n : 1, sizeof(*d->counts));
	return d->cpu_stats && d->counts ? lanes_init(&d->lanes, &config) : -ENOMEM;
}

/* Begin at the beginning. Return: 0, or negative errno. */
static int begin_stream(struct ptd_decoder *d, char **reterr_message)
{
	struct batchsource *source = d->session.source;
	int r;

	if (source)
		return source->ops->start(source, reterr_message);
	r = lanes_start(&d->lanes);
	return r < 0 ? session_check(&d->session, r, reterr_message) ?: r : 0;
}

/* The last instructions of each thread. */

static int next_batch(struct ptd_decoder *d, struct ptd_logged *ret_next);

/* Decode the times from @from on and before @to, and count. Return: 0, or negative errno. */
static int count_window(struct ptd_decoder *d, uint64_t from, uint64_t to, char **reterr_message)
{
	struct extract_counts counts = {};
	struct ptd_logged whole = {}, none;
	int r;

	extract_begin_window(d->extract, from, to);
	r = begin_stream(d, reterr_message);
	while (r == 0) {
		r = next_batch(d, &whole);
		if (r == 0)
			r = extract_batch(d->extract, &whole, &counts, &none);
	}
	lanes_stop(&d->lanes);
	extract_end_window(d->extract);
	if (r < 0 && !*reterr_message)
		*reterr_message = TAKE(d->message);
	return r < 0 ? r : 0;
}

/*
 * Find out where the last instructions of each thread begin. Windows of time are decoded, each
 * before the other and longer than it, until each thread has enough, or there is no more.
 */
static int find_last(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	const uint64_t asked_from = extract_from(d->extract), asked_to = extract_to(d->extract);
	uint64_t size = LAST_WINDOW, from, to = asked_to, end;
	int r;

	r = find_end(d, o, &end, reterr_message);
	if (r < 0)
		return r;
	extract_begin_search(d->extract);
	if (!lanes_can_seek(&d->lanes) || end == 0) {
		r = count_window(d, asked_from, asked_to, reterr_message);
	} else {
		do {
			const uint64_t latest =
			    lanes_latest_before(&d->lanes, to <= end ? to : end + 1);

			if (latest == 0)
				break;
			from = latest > size ? latest - size : 0;
			if (from < asked_from)
				from = asked_from;
			r = count_window(d, from, to, reterr_message);
			to = from;
			size = size < UINT64_MAX / 4 ? 4 * size : UINT64_MAX;
		} while (r == 0 && from > asked_from);
	}
	extract_end_search(d->extract);
	return r;
}

const char *ptd_version(void)
{
	return PTD_VERSION;
}

bool ptd_engine_exists(const char *name)
{
	return engine_find(name);
}

/* Make a message about the temporary files, instead of one about the input. */
static int cannot_spill(const struct ptd_options *o, int r, char **reterr_message)
{
	free(*reterr_message);
	if (r == -EFBIG)
		return message_set(reterr_message, r,
				   "%s: would put more than %" PRIu64
				   " bytes into temporary files, the limit (--max-spill)",
				   session_name_of(o), o->max_spill ?: PTD_MAX_SPILL);
	return message_set(reterr_message, r,
			   "%s: cannot write what is made of it to a temporary file in %s: %s",
			   session_name_of(o), spill_directory(), strerror(-r));
}

int decoder_new(const struct ptd_options *given, const struct decoder_config *config,
		struct ptd_decoder **ret_decoder, char **reterr_message)
{
	_cleanup_(ptd_decoder_freep) struct ptd_decoder *d = NULL;
	struct ptd_options own = {};
	const struct ptd_options *options = &own;
	const struct engine_ops *engine;
	_cleanup_(freep) char *unwanted = NULL;
	int r;

	if (!reterr_message)
		reterr_message = &unwanted;
	*reterr_message = NULL;

	/* A caller that was compiled against an older header has fewer options. */
	if (given->size > sizeof(own))
		return message_set(reterr_message, -EINVAL,
				   "the caller is newer than this library");
	memcpy(&own, given, given->size);
	if (!options->input == !options->raw_pt)
		return message_set(reterr_message, -EINVAL, "expected one input");
	engine = engine_find(options->engine);
	if (!engine)
		return message_set(reterr_message, -EINVAL, "no engine is called '%s'",
				   options->engine);

	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	(void)pthread_mutex_init(&d->positions_mutex, NULL);
	r = session_open(&d->session, options, config->feed, reterr_message);
	probes_init(&d->probes, d->session.resolver);
	if (r == 0 && options->core)
		r = corestacks_new(options->core, d->session.timeline, &d->core, reterr_message);
	if (r == 0)
		r = cache_new(options->no_symbols && options->part.n_symbols == 0 ? NULL : annotate,
			      d, &d->cache);
	if (r == 0)
		r = cut_end(d, options, reterr_message);
	if (r == 0)
		r = make_extract(d, options, reterr_message);
	if (r == 0)
		r = make_lanes(d, options, engine, config->cut_size ?: LANE_CUT_SIZE,
			       reterr_message);
	if (r == 0 && options->part.last)
		r = find_last(d, options, reterr_message);
	if (r == 0)
		r = begin_stream(d, reterr_message);
	if (r == 0 && d->session.overlay)
		r = overlay_start(d->session.overlay, reterr_message);
	if (r < 0 && d->session.reading.spills.failure == r)
		return cannot_spill(options, r, reterr_message);
	if (r < 0) {
		if (!*reterr_message)
			(void)message_set(reterr_message, r, "%s: %s", session_name_of(options),
					  strerror(-r));
		return r;
	}

	*ret_decoder = TAKE(d);
	return 0;
}

int ptd_decoder_new(const struct ptd_options *options, struct ptd_decoder **ret_decoder,
		    char **reterr_message)
{
	return decoder_new(options, &(struct decoder_config){}, ret_decoder, reterr_message);
}

struct ptd_decoder *ptd_decoder_free(struct ptd_decoder *decoder)
{
	if (!decoder)
		return NULL;

	lanes_deinit(&decoder->lanes);
	free(decoder->cpu_stats);
	free(decoder->counts);
	extract_free(decoder->extract);
	cache_free(decoder->cache);
	codemap_deinit(&decoder->codemap);
	probes_deinit(&decoder->probes);
	corestacks_free(decoder->core);
	session_deinit(&decoder->session);
	(void)pthread_mutex_destroy(&decoder->positions_mutex);
	free(decoder->message);
	free(decoder);
	return NULL;
}

const struct ahead_counts *decoder_parts(const struct ptd_decoder *decoder)
{
	return &decoder->lanes.counts;
}

const struct ptd_info *ptd_decoder_info(const struct ptd_decoder *decoder)
{
	return &decoder->session.info;
}

/* Nothing can be decoded any more. */
static int fail(struct ptd_decoder *d, const struct lane *lane, int r)
{
	d->r = r;
	return message_set(&d->message, r,
			   "%s: at byte %" PRIu64 " of the PT of CPU %" PRIu32 ": %s",
			   d->session.name, lane_offset(lane), lane->slice.cpu, strerror(-r));
}

const char *ptd_decoder_message(const struct ptd_decoder *decoder)
{
	return decoder->r == 0 ? NULL : decoder->message ?: "out of memory";
}

/* Make room for what is counted of @n CPUs. Return: 0 or -ENOMEM. */
static int reserve_cpus(struct ptd_decoder *d, size_t n)
{
	struct ptd_cpu_stats *stats = realloc(d->cpu_stats, n * sizeof(*stats));
	struct extract_counts *counts;

	if (!stats)
		return -ENOMEM;
	d->cpu_stats = stats;
	counts = realloc(d->counts, n * sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	d->counts = counts;
	memset(counts + d->n_cpus, 0, (n - d->n_cpus) * sizeof(*counts));
	d->n_cpus = n;
	return 0;
}

/* Return: PTD_END; or negative errno if the input is not what was meant. */
static int end_stream(struct ptd_decoder *d)
{
	d->r = session_check(&d->session, 0, &d->message);
	return d->r ?: PTD_END;
}

/* The next batch of an input that has them, or the next calls of a log. Return: as next_batch(). */
static int next_of_source(struct ptd_decoder *d, struct ptd_logged *ret_logged)
{
	struct batchsource *source = d->session.source;
	bool is_new = false;
	int r;

	if (source->ops->next_logged)
		r = source->ops->next_logged(source, ret_logged, &d->given_slice, &is_new,
					     &d->message);
	else
		r = source->ops->next(source, &ret_logged->batch, &d->given_slice, &is_new,
				      &d->message);
	if (r > 0)
		return end_stream(d);
	if (r == 0 && source->cpus.n > d->n_cpus)
		r = reserve_cpus(d, source->cpus.n);
	if (r == 0 && is_new)
		d->given_slice->id = NO_SLICE;
	d->r = r;
	return r;
}

/* The next batch, as it was decoded. Return: 0; PTD_END; or negative errno. */
static int next_batch(struct ptd_decoder *d, struct ptd_logged *ret_next)
{
	struct ahead *lane;
	int r;

	if (d->session.source)
		return next_of_source(d, ret_next);
	r = lanes_next(&d->lanes, &lane);
	if (r < 0) {
		d->r = session_check(&d->session, r, &d->message);
		return d->r ?: fail(d, &lane->lane, r);
	}
	/* A read fails itself if its file became shorter; here the rest of the file counts. */
	if (!lane || objects_failure(d->session.objects))
		return end_stream(d);
	if (lane->new_slice)
		lane->lane.slice.id = NO_SLICE;
	ret_next->n_calls = 0;
	ret_next->batch = (struct ptd_batch){
		.slice = &lane->lane.slice,
		.runs = lane->runs,
		.n_runs = lane->n_runs,
		.marks = lane->marks,
		.n_marks = lane->n_marks,
		.hold = lane->hold,
	};
	ret_next->batch.symbols = resolver_symbols(d->session.resolver, &ret_next->batch.n_symbols);
	d->given_slice = &lane->lane.slice;
	return 0;
}

/* Return: what is counted for the batch that the caller has. */
static struct extract_counts *counts_of_given(const struct ptd_decoder *d)
{
	const struct batchsource *source = d->session.source;

	return &d->counts[source ? source->cpu : (size_t)(d->lanes.given - d->lanes.items)];
}

/* Put what programs noted themselves into the batch, the next one. Return: 0; or negative errno. */
static int lay_over(struct ptd_decoder *d, struct ptd_batch *batch)
{
	return d->r = overlay_batch(d->session.overlay, batch, &d->message);
}

/* The batch is what the caller gets. */
static void count_events(struct ptd_decoder *d, const struct ptd_batch *batch)
{
	for (size_t i = 0; i < batch->n_marks; i++)
		d->n_events +=
		    ptd_mark_has_name(&batch->marks[i]) && batch->marks[i].kind != PTD_MARK_PROBE;
}

/* Return: PTD_END or -ENOMEM. */
static int end(struct ptd_decoder *decoder)
{
	bool lacks_kernel = false;

	for (size_t i = 0; i < decoder->lanes.n; i++)
		lacks_kernel = lacks_kernel || decoder->lanes.items[i].lane.lacks_kernel;
	decoder->r = session_end(&decoder->session,
				 decoder->extract ? NULL : decoder->session.overlay, lacks_kernel);
	return decoder->r ?: PTD_END;
}

/* Make what the caller gets next. Return: 0; PTD_END; or negative errno. */
static int next_given(struct ptd_decoder *d)
{
	const struct overlay *overlay = d->session.overlay;
	struct ptd_logged *given = &d->given;
	int r;

	if (d->r < 0)
		return d->r;
	do {
		struct ptd_logged whole = {}, *next = d->extract ? &whole : given;

		r = next_batch(d, next);
		if (r == PTD_END)
			return end(d);
		if (r == 0 && overlay)
			r = lay_over(d, &next->batch);
		if (r != 0)
			return r;
		if (!d->extract)
			break;
		r = extract_batch(d->extract, &whole, counts_of_given(d), given);
		if (r < 0)
			return d->r = r;
	} while (given->batch.n_runs == 0 && given->n_calls == 0 && given->batch.n_marks == 0);

	/* Of what is given out: a part may have the block, and not the probe. */
	r = probes_batch(&d->probes, &given->batch);
	if (r < 0)
		return d->r = r;
	if (overlay)
		count_events(d, &given->batch);
	if (d->given_slice->id == NO_SLICE)
		d->given_slice->id = d->n_slices++;
	return 0;
}

int ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch)
{
	const int r = decoder->session.info.logs_calls ? PTD_END : next_given(decoder);

	if (r == 0)
		*ret_batch = &decoder->given.batch;
	return r;
}

int ptd_decoder_next_logged(struct ptd_decoder *decoder, const struct ptd_logged **ret_logged)
{
	const int r = decoder->session.info.logs_calls ? next_given(decoder) : PTD_END;

	if (r == 0)
		*ret_logged = &decoder->given;
	return r;
}

int ptd_decoder_next_sideband(struct ptd_decoder *decoder, const struct ptd_sideband **ret_record)
{
	const struct trace *trace = decoder->session.trace;

	while (decoder->next_record < trace->n_records) {
		if (!sidebandrecord_read(&trace->records[decoder->next_record++], &decoder->shown))
			continue;
		*ret_record = &decoder->shown;
		return 0;
	}
	return PTD_END;
}

int ptd_decoder_positions(struct ptd_decoder *decoder, const struct ptd_object *object,
			  uint64_t address, struct ptd_position *ret_positions)
{
	struct symbol_source *source;
	int r = 0;

	static_assert(offsetof(struct object, id) == 0, "objects of batches are the decoder's");
	source = ((const struct object *)object)->symbols;
	(void)pthread_mutex_lock(&decoder->positions_mutex);
	if (source && source->ops->positions)
		r = source->ops->positions(source, address, ret_positions);
	(void)pthread_mutex_unlock(&decoder->positions_mutex);
	return r;
}

int ptd_decoder_inlined(struct ptd_decoder *decoder, const struct ptd_object *object,
			uint64_t address, const struct ptd_inlined **ret_inlined, uint64_t *ret_end)
{
	struct symbol_source *source = ((const struct object *)object)->symbols;
	int r = 0;

	*ret_inlined = NULL;
	*ret_end = UINT64_MAX;
	(void)pthread_mutex_lock(&decoder->positions_mutex);
	if (source && source->ops->inlined)
		r = source->ops->inlined(source, address, ret_inlined, ret_end);
	(void)pthread_mutex_unlock(&decoder->positions_mutex);
	return r;
}

int ptd_decoder_lines(struct ptd_decoder *decoder, const struct ptd_object *object,
		      struct ptd_line_table *ret_table)
{
	struct symbol_source *source = ((const struct object *)object)->symbols;
	int r = 0;

	*ret_table = (struct ptd_line_table){};
	(void)pthread_mutex_lock(&decoder->positions_mutex);
	if (source && source->ops->lines)
		r = source->ops->lines(source, ret_table);
	(void)pthread_mutex_unlock(&decoder->positions_mutex);
	return r;
}

int ptd_decoder_probes(struct ptd_decoder *decoder, const struct ptd_object *object,
		       const struct ptd_probe **ret_probes, size_t *ret_n)
{
	return probes_find(&decoder->probes, (const struct object *)object, ret_probes, ret_n);
}

int ptd_decoder_place(struct ptd_decoder *decoder, uint32_t space, uint64_t t, uint64_t ip,
		      struct ptd_place *ret_place)
{
	const struct space *at = timeline_space(decoder->session.timeline, space);
	const struct object *object = NULL;
	struct ptd_place place = {};
	uint32_t symbol = PTD_NO_SYMBOL;
	uint64_t end;
	size_t n;
	int r = 0;

	if (at)
		r = codemap_find(&decoder->codemap, at, t, ip, &object, &place.address);
	if (r == 0 && object)
		r = resolver_find(decoder->session.resolver, object->symbols, place.address,
				  &symbol, &end);
	if (r < 0)
		return r;
	place.object = object ? &object->id : NULL;
	if (symbol != PTD_NO_SYMBOL)
		place.symbol = resolver_symbols(decoder->session.resolver, &n)[symbol];
	*ret_place = place;
	return 0;
}

const struct ptd_core_thread *ptd_decoder_core(const struct ptd_decoder *decoder, size_t *ret_n)
{
	*ret_n = 0;
	return decoder->core ? corestacks_threads(decoder->core, ret_n) : NULL;
}

int ptd_decoder_core_stack(struct ptd_decoder *decoder, size_t i,
			   const struct ptd_core_frame **ret_frames, size_t *ret_n,
			   bool *ret_complete)
{
	return corestacks_walk(decoder->core, &decoder->codemap, i, ret_frames, ret_n,
			       ret_complete);
}

size_t ptd_decoder_code(const struct ptd_decoder *decoder, const struct ptd_object *object,
			uint64_t address, void *ret_bytes, size_t size)
{
	const uint8_t *bytes;
	uint64_t n;

	bytes = object_code((const struct object *)object, address, size, &n);
	if (!bytes)
		return 0;
	memcpy(ret_bytes, bytes, (size_t)n);
	return (size_t)n;
}

/* Take what was left out of the stream out of the statistics of lane @i. */
static void leave_out_counts(struct ptd_decoder *d, size_t i)
{
	const struct extract_counts *counts = &d->counts[i];
	struct ptd_cpu_stats *stats = &d->cpu_stats[i];

	stats->n_insns -= counts->n_insns;
	stats->n_insns_out_of_scope = counts->n_insns;
	stats->t_first = counts->t_first;
	stats->t_last = counts->t_last;
	d->stats.n_insns_early -= counts->n_insns_early;
	for (size_t k = 0; k < _PTD_GAP_REASONS; k++) {
		stats->n_gaps -= counts->n_gaps[k];
		stats->bytes_lost -= counts->gap_bytes[k];
		stats->bytes_out_of_scope += counts->gap_bytes[k];
		d->n_gaps[k] -= counts->n_gaps[k];
		d->gap_bytes[k] -= counts->gap_bytes[k];
	}
}

/* The statistics of an input that has batches. */
static void count_source(struct ptd_decoder *d)
{
	d->stats.n_cpus = d->session.source->cpus.n;
	memcpy(d->n_gaps, d->session.source->n_gaps, sizeof(d->n_gaps));
	for (size_t i = 0; i < d->stats.n_cpus; i++) {
		d->cpu_stats[i] = d->session.source->cpus.items[i];
		if (d->extract)
			leave_out_counts(d, i);
	}
}

const struct ptd_stats *ptd_decoder_stats(struct ptd_decoder *decoder)
{
	memset(decoder->n_gaps, 0, sizeof(decoder->n_gaps));
	memset(decoder->gap_bytes, 0, sizeof(decoder->gap_bytes));
	decoder->stats = (struct ptd_stats){
		.cpus = decoder->cpu_stats,
		.n_cpus = decoder->lanes.n,
		.n_gaps = decoder->n_gaps,
		.gap_bytes = decoder->gap_bytes,
		.n_gap_reasons = _PTD_GAP_REASONS,
		.n_records_unknown = decoder->session.trace->n_unknown,
		.n_records_bad = decoder->session.trace->n_skipped +
				 timeline_n_skipped(decoder->session.timeline),
	};
	if (decoder->session.overlay) {
		decoder->stats.n_events = decoder->n_events;
		if (!decoder->extract)
			decoder->stats.n_events_left_out =
			    overlay_n_calls(decoder->session.overlay) - decoder->n_events;
	}
	if (decoder->session.source)
		count_source(decoder);
	for (size_t i = 0; i < decoder->lanes.n; i++) {
		const struct lane *lane = &decoder->lanes.items[i].lane;

		decoder->cpu_stats[i] = lane->stats;
		decoder->stats.n_insns_early += lane->n_insns_early;
		for (size_t k = 0; k < _PTD_GAP_REASONS; k++) {
			decoder->n_gaps[k] += lane->n_gaps[k];
			decoder->gap_bytes[k] += lane->gap_bytes[k];
		}
		if (decoder->extract)
			leave_out_counts(decoder, i);
	}
	return &decoder->stats;
}

void ptd_decoder_progress(const struct ptd_decoder *decoder, uint64_t *ret_done,
			  uint64_t *ret_total)
{
	*ret_done = lanes_done(&decoder->lanes, ret_total);
}
