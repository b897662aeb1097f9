/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libptdecode: wires the stages, and is the only file that knows them all. */

#include "decoder/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "decoder/ahead.h"
#include "decoder/calllog/calllog.h"
#include "decoder/calllog/callsource.h"
#include "decoder/calllog/fdrlog.h"
#include "decoder/calllog/ovnilog.h"
#include "decoder/codemap.h"
#include "decoder/corestack.h"
#include "decoder/extract.h"
#include "decoder/file/input.h"
#include "decoder/file/reading.h"
#include "decoder/image/cache.h"
#include "decoder/image/objects.h"
#include "decoder/image/rawspace.h"
#include "decoder/image/space.h"
#include "decoder/image/view.h"
#include "decoder/memtrace/tracedir.h"
#include "decoder/memtrace/tracesource.h"
#include "decoder/overlay.h"
#include "decoder/pt/engine.h"
#include "decoder/pt/errata.h"
#include "decoder/pt/walk.h"
#include "decoder/sideband/filtered.h"
#include "decoder/sideband/sidebandrecord.h"
#include "decoder/sideband/timeline.h"
#include "decoder/symbol/resolver.h"
#include "decoder/symbol/source.h"
#include "decoder/timerange.h"
#include "decoder/trace/trace.h"
#include "ptd/snapshot.h"
#include "record/tsc.h"
#include "util/batchsource.h"
#include "util/fetch.h"
#include "util/message.h"
#include "util/pieces.h"
#include "util/spill.h"
#include "util/threads.h"

/* AUX buffers, of CPUs or threads. Each lane has a buffer for its runs and an engine. */
#define LANES_MAX 4096

/*
 * How many parts of all lanes may be decoded ahead: so many for each thread, or, if there are more
 * lanes than that, two of each, up to a number that is bounded because each part takes memory.
 */
#define PARTS_PER_THREAD 3
#define PARTS_PER_LANE   2
#define PARTS_MAX        128
/* How long the first window is in which the last instructions are looked for, in ns or ticks. */
#define LAST_WINDOW (UINT64_C(1) << 17)

/* Blocks ahead of the one that is shown. */
#define SHOW_PREFETCH 4

/* The id of a slice of which nothing was given to the caller yet. */
#define NO_SLICE UINT64_MAX

struct ptd_decoder {
	char *name;                      /* what messages call the input */
	pthread_mutex_t positions_mutex; /* held by the thread that asks for source positions */
	pthread_mutex_t fetch_mutex;     /* held by the thread that asks for a file */
	struct fetch fetch;
	struct ptd_info info;
	struct reading reading;
	int r;         /* of what failed first; 0: nothing did */
	char *message; /* that goes with it */

	struct trace *trace;
	struct timeline *timeline;
	struct filtered filtered;
	struct objects *objects;
	struct resolver *resolver;
	struct codemap codemap;
	struct corestacks *core; /* NULL: there is no core file */
	struct cache *cache;
	struct engine_budget budget;
	struct ptd_threads *threads;     /* borrowed; or NULL */
	struct views *views;             /* for the lanes; */
	struct views *part_views;        /* and for parts of them; NULL: no thread decodes such */
	const struct expander *expander; /* borrowed; or NULL */
	struct runpool *runs;

	struct batchsource *source; /* an input that has batches instead of PT, and no lanes; or
				     * NULL */
	struct overlay *overlay;    /* what programs noted themselves; or NULL */
	char *unknown_thread;       /* the complaint about threads that only @overlay knows */

	struct lane_config lane_config; /* but for the queue */
	struct ahead *lanes;
	size_t n_lanes;
	struct ahead *given; /* the lane whose batch the caller has; NULL: none */

	struct extract *extract;       /* NULL: all is asked for */
	struct extract_counts *counts; /* of the lanes, or of the source's CPUs */
	struct ptd_slice *given_slice; /* of the batch that the caller has */
	uint64_t n_slices;
	struct ptd_batch batch;
	size_t next_record;        /* index of the next sideband record to be shown */
	struct ptd_sideband shown; /* the record that the caller has */

	char *trace_complaints[_TRACE_COMPLAINTS]; /* with its name */
	const char **complaints;

	struct ptd_cpu_stats *cpu_stats;
	size_t n_cpus; /* of the source: that there is room for */
	uint64_t n_gaps[_PTD_GAP_REASONS];
	uint64_t gap_bytes[_PTD_GAP_REASONS];
	uint64_t n_stated; /* marks of the overlay that were given out */
	struct ptd_stats stats;
};

DEFINE_CLEANUP(struct ptd_decoder *, ptd_decoder_free);

static int annotate(void *userdata, const struct object *object, const struct ptd_block *block,
		    struct ptd_insn *insns)
{
	struct ptd_decoder *d = userdata;
	uint32_t symbol = PTD_NO_SYMBOL;
	uint64_t end = block->address;
	int r;

	for (size_t i = 0; i < block->n_insns; i++) {
		const uint64_t address = block->address + insns[i].offset;

		if (address >= end) {
			r = resolver_find(d->resolver, object->symbols, address, &symbol, &end);
			if (r < 0)
				return r;
		}
		insns[i].symbol = symbol;
	}
	return 0;
}

/* Ask the caller for a file, one at a time. */
static int fetch_one(void *userdata, enum ptd_fetch what, const uint8_t *build_id, size_t size,
		     char **ret_path)
{
	struct ptd_decoder *d = userdata;
	int r;

	(void)pthread_mutex_lock(&d->fetch_mutex);
	r = d->fetch.get(d->fetch.userdata, what, build_id, size, ret_path);
	(void)pthread_mutex_unlock(&d->fetch_mutex);
	return r;
}

static int look_in_places(struct ptd_decoder *d, const struct ptd_options *o)
{
	d->fetch = (struct fetch){ o->fetch, o->userdata };
	return objects_look_in(
	    d->objects, &(struct objects_places){ .buildid_dir = o->buildid_dir,
						  .symfs = o->symfs,
						  .debug_dir = o->debug_dir,
						  .fetch = { o->fetch ? fetch_one : NULL, d } });
}

/* A bare PT stream; the caller says what was mapped. */
/* Read the address filter of a bare stream. It can name no file, because nothing says where files
 * were mapped. */
static int read_filter(const char *text, struct addrfilters *ret_filters, char **reterr_message)
{
	struct addrfilters filters;
	bool has_path = false;
	int r;

	r = addrfilter_read(text, strlen(text), &filters);
	for (size_t i = 0; r == 0 && i < filters.n; i++)
		has_path = has_path || filters.parts[i].path;
	if (r < 0 || has_path)
		return message_set(reterr_message, -EINVAL,
				   "address filter \"%s\": expected such as filter "
				   "0x401000/0x80 or tracestop 0x402000/0x10",
				   text);
	*ret_filters = filters;
	return 0;
}

static int open_bare(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	struct space *space;
	int r;

	r = input_open_bare(o->raw_pt, &d->reading, &d->trace, reterr_message);
	if (r == 0 && o->raw_filter)
		r = read_filter(o->raw_filter, &d->trace->facts.filters, reterr_message);
	if (r < 0)
		return r;
	r = objects_new(NULL, &d->objects);
	if (r == 0)
		r = look_in_places(d, o);
	if (r < 0)
		return r;
	r = rawspace_new(o->raw_code, o->n_raw_code, d->objects, &space, reterr_message);
	if (r < 0)
		return r;
	return timeline_new_bare(space, &d->timeline);
}

/* Return: what messages call the input. */
static const char *name_of(const struct ptd_options *o)
{
	return o->input ?: o->raw_pt;
}

/* Return: the input if it is a directory, which may hold objects, too; else NULL. */
static const char *input_dir(const struct ptd_options *o)
{
	struct stat st;

	return o->input && stat(o->input, &st) == 0 && S_ISDIR(st.st_mode) ? o->input : NULL;
}

/* Collect the complaints of the trace, of the timeline, and of @log, which may be NULL. There is
 * room for one more. */
static int collect_complaints(struct ptd_decoder *d, const char *name, const struct calllog *log)
{
	const char *const *others;
	size_t n, n_others;

	others = timeline_complaints(d->timeline, &n_others);
	d->complaints = calloc(n_others + _TRACE_COMPLAINTS + CALLLOG_COMPLAINTS_MAX + 1,
			       sizeof(*d->complaints));
	if (!d->complaints)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < _TRACE_COMPLAINTS; i++) {
		if (!d->trace->complaints[i])
			continue;
		if (asprintf(&d->trace_complaints[i], "%s: %s", name, d->trace->complaints[i]) <
		    0) {
			d->trace_complaints[i] = NULL;
			return -ENOMEM;
		}
		d->complaints[n++] = d->trace_complaints[i];
	}
	for (size_t i = 0; i < n_others; i++)
		d->complaints[n++] = others[i];
	for (size_t i = 0; log && i < log->n_complaints; i++)
		d->complaints[n++] = log->complaints[i];
	d->info.complaints = d->complaints;
	d->info.n_complaints = n;
	return 0;
}

/* A perf.data file, a directory of them, or a snapshot. */
static int open_recording(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	int r;

	r = input_open(o->input, o->force, &d->reading, &d->trace, reterr_message);
	if (r < 0)
		return r;
	r = objects_new(input_dir(o), &d->objects);
	if (r == -EBADMSG)
		return message_set(
		    reterr_message, r,
		    "%s/" PTD_SNAPSHOT_OBJECTS_MAP
		    ": expected lines of a build-id or \"sha256:\" and a hash, a tab, "
		    "and a path",
		    o->input);
	if (r < 0)
		return r;
	r = look_in_places(d, o);
	if (r < 0)
		return r;
	return timeline_new(d->trace, d->objects, &d->timeline);
}

static int make_source(struct ptd_decoder *d, const struct ptd_options *o,
		       const struct decoder_feed *feed, char **reterr_message)
{
	struct calllog *log;
	int r;

	if (feed)
		return feed->make(feed->userdata, d->objects, d->resolver, &d->source);
	if (tracedir_is(o->input))
		return tracesource_new(o->input, d->objects, d->resolver, &d->source,
				       reterr_message);
	if (fdrlog_is(o->input))
		r = fdrlog_open(o->input, o->instr_map, d->objects, d->resolver, &log,
				reterr_message);
	else
		r = ovnilog_open(o->input, 0, d->objects, d->resolver, &log, reterr_message);
	if (r < 0)
		return r;
	r = callsource_new(log, &d->source);
	if (r < 0)
		calllog_free(log);
	return r;
}

static bool has_batches(const char *input)
{
	return fdrlog_is(input) || tracedir_is(input) || ovnilog_is(input);
}

/* Something that has batches, which is a trace without queues. */
static int open_batches(struct ptd_decoder *d, const struct ptd_options *o,
			const struct decoder_feed *feed, char **reterr_message)
{
	struct space *space;
	int r;

	d->trace = calloc(1, sizeof(*d->trace));
	if (!d->trace)
		return -ENOMEM;
	r = objects_new(NULL, &d->objects);
	if (r == 0)
		r = look_in_places(d, o);
	if (r == 0)
		r = space_new(0, NULL, 0, &space);
	if (r == 0)
		r = timeline_new_bare(space, &d->timeline);
	if (r == 0)
		r = make_source(d, o, feed, reterr_message);
	if (r < 0)
		return r;
	d->info.clock = d->source->clock;
	d->info.realtime_offset_ns = d->source->realtime_offset_ns;
	d->info.states_calls = d->source->states_calls;
	d->info.complaints = d->source->complaints;
	d->info.n_complaints = d->source->n_complaints;
	return 0;
}

/* Open the log of what programs noted themselves. Return: 0 and @ret_log, which belongs to the
 * decoder; or negative errno and @reterr_message. */
static int open_overlay(struct ptd_decoder *d, const struct ptd_options *o,
			const struct calllog **ret_log, char **reterr_message)
{
	struct calllog *log;
	int r;

	if (d->info.clock != PTD_CLOCK_NS)
		return message_set(reterr_message, -EINVAL,
				   "%s: has no times in ns, by which events could be merged",
				   name_of(o));
	if (!ovnilog_is(o->ovni))
		return message_set(reterr_message, -EINVAL, "%s: is no trace of ovni", o->ovni);
	r = ovnilog_open(o->ovni, d->trace->facts.monotonic_offset_ns, d->objects, d->resolver,
			 &log, reterr_message);
	if (r < 0)
		return r;
	r = overlay_new(log, &d->overlay);
	if (r < 0)
		calllog_free(log);
	else
		*ret_log = log;
	return r;
}

static int open_trace(struct ptd_decoder *d, const struct ptd_options *o,
		      const struct decoder_feed *feed, char **reterr_message)
{
	const struct trace_facts *facts;
	const struct calllog *log = NULL;
	int r;

	if (feed || (o->input && has_batches(o->input))) {
		if (o->ovni)
			return message_set(reterr_message, -EINVAL,
					   "%s: is no recording, with which events could be merged",
					   o->input);
		return open_batches(d, o, feed, reterr_message);
	}
	r = o->input ? open_recording(d, o, reterr_message) : open_bare(d, o, reterr_message);
	if (r < 0)
		return r;

	if (filtered_find(d->trace, &d->filtered) == FILTERED_TOO_MANY)
		d->trace->complaints[TRACE_COMPLAINT_FILTER] =
		    "its address filter is not used: what it names was mapped at more than 4 "
		    "addresses";

	facts = &d->trace->facts;
	if (!errata_knows(o->cpu_family ? o->cpu_family : facts->cpu_family,
			  o->cpu_family ? o->cpu_model : facts->cpu_model))
		d->trace->complaints[TRACE_COMPLAINT_CPU] =
		    "the model of its CPU is not known: if its PT has errata, none is worked "
		    "around";
	d->info.clock = !facts->has_tsc      ? PTD_CLOCK_NONE
			: facts->clock.valid ? PTD_CLOCK_NS
					     : PTD_CLOCK_TSC;
	d->info.realtime_offset_ns = facts->realtime_offset_ns;
	if (d->info.clock == PTD_CLOCK_NS)
		d->info.snapshot_taken = facts->snapshot_taken;
	d->info.bytes_overwritten = facts->bytes_overwritten;
	d->info.complete_since = facts->complete_since;
	d->info.truncated_at = d->trace->truncated_at;
	if (o->ovni)
		r = open_overlay(d, o, &log, reterr_message);
	return r < 0 ? r : collect_complaints(d, name_of(o), log);
}

/* What the user states of the CPU counts before what the input states. */
static struct engine_config engine_config_of(struct ptd_decoder *d, const struct ptd_options *o)
{
	const struct trace_facts *facts = &d->trace->facts;
	struct engine_config c = {
		.cpu_family = facts->cpu_family,
		.cpu_model = facts->cpu_model,
		.cpu_stepping = facts->cpu_stepping,
		.mtc_freq = o->mtc_freq ? o->mtc_freq : facts->mtc_freq,
		.nom_freq = o->nom_freq ? o->nom_freq : facts->nom_freq,
		.cpuid_15_eax = o->cpuid_15_eax ? o->cpuid_15_eax : facts->tsc_ctc_d,
		.cpuid_15_ebx = o->cpuid_15_ebx ? o->cpuid_15_ebx : facts->tsc_ctc_n,
		.has_events = facts->has_events,
		.has_threads = !facts->is_bare && facts->has_tsc,
		.cache = d->cache,
		.views = d->views,
		.budget = &d->budget,
	};

	if (o->cpu_family) {
		c.cpu_family = o->cpu_family;
		c.cpu_model = o->cpu_model;
		c.cpu_stepping = o->cpu_stepping;
	}
	static_assert(FILTERED_RANGES_MAX <= ENGINE_FILTERS_MAX, "an engine takes all");
	for (; c.n_filters < d->filtered.n; c.n_filters++) {
		const struct filtered_range *range = &d->filtered.ranges[c.n_filters];

		c.filters[c.n_filters] = (struct engine_filter){ .first = range->first,
								 .last = range->last,
								 .stops = range->stops };
	}
	return c;
}

/*
 * What was read is as it was, but it may not be what was meant. @r is what decoding came to: 0, or
 * negative errno. (Pieces that were read ahead, but were not needed, do not count.)
 *
 * Return: 0; or -ESTALE or -EKEYREJECTED, and @reterr_message, if a file was changed since it was
 *         opened, or is not the one that was written.
 */
static int check_inputs(const struct ptd_decoder *d, int r, char **reterr_message)
{
	const char *failure = objects_failure(d->objects);
	uint64_t offset;
	const struct reading_file *file;
	off_t size;

	/* What was decoded meanwhile may have gaps, and lack names, where the file has none. */
	if (failure)
		return message_set(reterr_message, -ESTALE, "%s", failure);
	if (r == -EKEYREJECTED && d->reading.pieces && pieces_failed(d->reading.pieces, &offset))
		return message_set(reterr_message, -EKEYREJECTED,
				   "%s/" PTD_SNAPSHOT_DATA
				   " is not the file that was written: from byte %" PRIu64
				   " on it has another SHA-256 than " PTD_SNAPSHOT_PIECES
				   " says (--force decodes it all the same)",
				   d->name, offset);
	file = reading_find_cut(&d->reading, &size);
	if (!file)
		return 0;
	return message_set(
	    reterr_message, -ESTALE,
	    "%s: became shorter while it was decoded: it had %jd bytes, and has %jd now",
	    file->path, (intmax_t)file->size, (intmax_t)size);
}

/* How many parts of a lane may be decoded ahead. */
static size_t n_parts_of(const struct ptd_decoder *d)
{
	const size_t n_lanes = d->trace->n_queues ?: 1;
	const size_t of_lanes =
	    PARTS_PER_LANE * n_lanes < PARTS_MAX ? PARTS_PER_LANE * n_lanes : PARTS_MAX;
	const size_t of_threads = PARTS_PER_THREAD * threads_n(d->threads);

	return (of_threads > of_lanes ? of_threads : of_lanes) / n_lanes;
}

/*
 * Make views: for the lanes alone, and for the parts that threads decode, the calling thread too
 * while it waits. Where those of the parts find no room, the lane has to decode.
 */
static int make_views(struct ptd_decoder *d)
{
	int r = views_new(d->cache, &d->views);

	if (r == 0 && threads_n(d->threads) > 1)
		r = views_new(d->cache, &d->part_views);
	if (r == 0 && d->part_views)
		views_share(d->part_views);
	return r;
}

/* The part that is asked for. */

/* Return: how to search the PT of @d for PSBs and times; config.pt is to be set. */
static struct walk_config search_config(struct ptd_decoder *d, const struct ptd_options *o)
{
	const struct engine_config config = engine_config_of(d, o);

	return (struct walk_config){ .window = WALK_WINDOW_PSBS,
				     .mtc_freq = config.mtc_freq,
				     .nom_freq = config.nom_freq,
				     .cpuid_15_eax = config.cpuid_15_eax,
				     .cpuid_15_ebx = config.cpuid_15_ebx };
}

/* Find out when the PT of @queue ends; 0: that is not known. Return: 0, or -errno of reading. */
static int end_of_queue(const struct ptd_decoder *d, const struct trace_queue *queue,
			struct walk_config config, uint64_t *ret_end)
{
	const struct tsc_conv *clock = &d->trace->facts.clock;
	uint64_t end = 0;
	int r = 0;

	for (size_t i = queue->n_spans; i > 0 && end == 0 && r == 0; i--) {
		struct walk walk;

		config.pt = queue->spans[i - 1].pt;
		walk_init(&walk, &config);
		end = walk_last_time(&walk);
		r = walk_read_error(&walk);
		walk_deinit(&walk);
	}
	*ret_end = end && clock->valid ? tsc_to_ns(clock, end) : end;
	return r;
}

static int end_of_pt(struct ptd_decoder *d, const struct ptd_options *o, uint64_t *ret_end)
{
	const struct walk_config config = search_config(d, o);
	uint64_t end = 0;
	int r = 0;

	for (size_t i = 0; i < d->trace->n_queues && r == 0; i++) {
		uint64_t t;

		r = end_of_queue(d, &d->trace->queues[i], config, &t);
		end = t > end ? t : end;
	}
	*ret_end = end;
	return r;
}

/* Cut the PT of @queue off behind the first packet of a time later than @until, a TSC. That packet
 * stays, because it bounds the code before it. Return: 0, or -errno of reading. */
static int end_queue(struct trace_queue *queue, struct walk_config config, uint64_t until)
{
	bool is_done = false;
	int r = 0;

	/* The spans are in the order of time. */
	for (size_t i = queue->n_spans; i > 0 && !is_done && r == 0; i--) {
		struct fileparts *pt = &queue->spans[i - 1].pt;
		struct walk walk;
		uint64_t size, begin;

		config.pt = *pt;
		walk_init(&walk, &config);
		size = walk_find_later(&walk, until);
		begin = walk_psb_time(&walk, walk_find_psb(&walk, 0));
		is_done = begin > 0 && begin <= until;
		r = walk_read_error(&walk);
		walk_deinit(&walk);
		pt->size = size;
	}
	return r;
}

/*
 * The rings of a snapshot were read one after the other. Leave out what they have of a later time
 * than the one until which all of them are complete: a thread may have run on another CPU before,
 * whose ring lacks it.
 */
static int end_together(struct ptd_decoder *d, const struct ptd_options *o)
{
	const struct trace_facts *facts = &d->trace->facts;
	int r = 0;

	if (facts->complete_until == 0 || !facts->has_tsc || !facts->clock.valid)
		return 0;
	for (size_t i = 0; i < d->trace->n_queues && r == 0; i++)
		r = end_queue(&d->trace->queues[i], search_config(d, o),
			      tsc_from_ns(&facts->clock, facts->complete_until));
	return r;
}

/* Ask for the times that the user wrote. */
static int set_times(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	const char *text = o->part.time;
	struct timerange_clock clock = { .clock = d->info.clock,
					 .realtime_offset_ns = d->info.realtime_offset_ns };
	struct timerange range;
	int r = 0;

	if (clock.clock == PTD_CLOCK_NONE)
		return message_set(reterr_message, -EINVAL, "time \"%s\": the input has no time",
				   text);
	if (timerange_needs_end(text))
		r = end_of_pt(d, o, &clock.end);
	if (r < 0)
		return check_inputs(d, r, reterr_message) ?: r;
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
	if (d->info.snapshot_taken < range.from || d->info.snapshot_taken >= range.to)
		d->info.snapshot_taken = 0;
	return 0;
}

static int make_extract(struct ptd_decoder *d, const struct ptd_options *o, char **reterr_message)
{
	int r;

	if (!extract_is_part(&o->part))
		return 0;
	if (o->part.last && d->info.states_calls)
		return message_set(reterr_message, -EINVAL,
				   "%s: has no instructions, of which the last are asked for",
				   o->input);
	r = extract_new(&o->part, d->source ? NULL : d->timeline, &d->extract);
	return r == 0 && o->part.time ? set_times(d, o, reterr_message) : r;
}

static void stop_lanes(struct ptd_decoder *d)
{
	for (size_t i = 0; i < d->n_lanes; i++)
		ahead_deinit(&d->lanes[i]);
	d->n_lanes = 0;
	d->given = NULL;
}

/* Let all lanes begin at their beginning. Return: 0, or negative errno. */
static int start_lanes(struct ptd_decoder *d, char **reterr_message)
{
	const struct ahead_config ahead = {
		.threads = d->threads,
		.views = d->part_views,
		.runs = d->runs,
		.expander = &d->expander,
		.n_parts = n_parts_of(d),
	};
	struct lane_config config = d->lane_config;
	int r;

	if (d->source)
		return d->source->ops->start(d->source, reterr_message);
	d->budget.n_insns = ENGINE_INSNS_MIN;
	for (; d->n_lanes < d->trace->n_queues; d->n_lanes++) {
		config.queue = &d->trace->queues[d->n_lanes];
		r = ahead_init(&d->lanes[d->n_lanes], &ahead, &config);
		if (r < 0)
			return r;
		if (d->extract && !extract_asks_for_cpu(d->extract, config.queue->cpu))
			lane_leave_out(&d->lanes[d->n_lanes].lane);
	}
	for (size_t i = 0; i < d->n_lanes; i++) {
		r = ahead_fill(&d->lanes[i]);
		if (r < 0)
			return check_inputs(d, r, reterr_message) ?: r;
	}
	return 0;
}

static int make_lanes(struct ptd_decoder *d, const struct ptd_options *o,
		      const struct engine_ops *engine, char **reterr_message)
{
	const size_t n = d->trace->n_queues;

	d->lane_config = (struct lane_config){
		.trace = d->trace,
		.timeline = d->timeline,
		.engine = engine,
		.engine_config = engine_config_of(d, o),
		.extract = d->extract,
		.cut_size = ahead_cut_size,
	};
	if (n > LANES_MAX)
		return message_set(reterr_message, -EFBIG,
				   "%s: has %zu AUX buffers; %d at the most", o->input, n,
				   LANES_MAX);
	d->lanes = calloc(n ? n : 1, sizeof(*d->lanes));
	d->cpu_stats = calloc(n ? n : 1, sizeof(*d->cpu_stats));
	d->counts = calloc(n ? n : 1, sizeof(*d->counts));
	return d->lanes && d->cpu_stats && d->counts ? 0 : -ENOMEM;
}

/* The last instructions of each thread. */

static int next_batch(struct ptd_decoder *d, struct ptd_batch *ret_batch);

/* Decode the times from @from on and before @to, and count. Return: 0, or negative errno. */
static int count_window(struct ptd_decoder *d, uint64_t from, uint64_t to, char **reterr_message)
{
	struct extract_counts counts = {};
	struct ptd_batch whole, none;
	int r;

	extract_begin_window(d->extract, from, to);
	r = start_lanes(d, reterr_message);
	while (r == 0) {
		r = next_batch(d, &whole);
		if (r == 0)
			r = extract_batch(d->extract, &whole, &counts, &none);
	}
	stop_lanes(d);
	extract_end_window(d->extract);
	if (r < 0 && !*reterr_message)
		*reterr_message = TAKE(d->message);
	return r < 0 ? r : 0;
}

/* Return: the latest time before @time at which something that is counted ran; 0: none. */
static uint64_t latest_before(const struct ptd_decoder *d, uint64_t time)
{
	struct sections_config config = { .trace = d->trace,
					  .timeline = d->timeline,
					  .extract = d->extract };
	uint64_t latest = 0;

	for (size_t i = 0; i < d->trace->n_queues; i++) {
		uint64_t t;

		config.queue = &d->trace->queues[i];
		if (!extract_asks_for_cpu(d->extract, config.queue->cpu))
			continue;
		t = sections_latest_before(&config, time);
		latest = t > latest ? t : latest;
	}
	return latest;
}

/* Return: whether all lanes can begin at any section, and what they count is in order of time. */
static bool can_seek(const struct ptd_decoder *d)
{
	const size_t n = d->trace->n_queues;
	bool can = engine_can_join(d->lane_config.engine);
	uint64_t since;

	for (size_t i = 0; i < n && can; i++) {
		const struct trace_queue *queue = &d->trace->queues[i];

		can = sections_exist(&(struct sections_config){
		    .trace = d->trace, .queue = queue, .cut_size = d->lane_config.cut_size });
		/* What no known thread ran is of one CPU, but not of one buffer of a thread. */
		if (n > 1 && queue->cpu == TRACE_NONE)
			can = can && !extract_asks_for_unknown(d->extract, queue->cpu, &since);
	}
	return can;
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

	r = end_of_pt(d, o, &end);
	if (r < 0)
		return check_inputs(d, r, reterr_message) ?: r;
	extract_begin_search(d->extract);
	if (!can_seek(d) || end == 0) {
		r = count_window(d, asked_from, asked_to, reterr_message);
	} else {
		do {
			const uint64_t latest = latest_before(d, to <= end ? to : end + 1);

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
				   name_of(o), o->max_spill ?: PTD_MAX_SPILL);
	return message_set(reterr_message, r,
			   "%s: cannot write what is made of it to a temporary file in %s: %s",
			   name_of(o), spill_directory(), strerror(-r));
}

int decoder_new_fed(const struct ptd_options *given, const struct decoder_feed *feed,
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
	(void)pthread_mutex_init(&d->fetch_mutex, NULL);
	d->threads = d->reading.threads = options->threads;
	d->reading.is_part = extract_is_part(&options->part);
	d->reading.spills.room = options->max_spill ?: PTD_MAX_SPILL;
	d->reading.progress =
	    (struct progress){ .report = options->opening, .userdata = options->userdata };
	d->name = strdup(name_of(options));
	if (!d->name)
		return -ENOMEM;
	r = resolver_new(&d->resolver);
	if (r == 0)
		r = open_trace(d, options, feed, reterr_message);
	if (r == 0 && options->core)
		r = corestacks_new(options->core, d->timeline, &d->core, reterr_message);
	if (r == 0)
		r = cache_new(options->no_symbols && options->part.n_symbols == 0 ? NULL : annotate,
			      d, &d->cache);
	if (r == 0)
		r = make_views(d);
	if (r == 0)
		r = runpool_new(threads_n(d->threads), &d->runs);
	if (r == 0) {
		r = end_together(d, options);
		if (r < 0)
			r = check_inputs(d, r, reterr_message) ?: r;
	}
	if (r == 0)
		r = make_extract(d, options, reterr_message);
	if (r == 0)
		r = make_lanes(d, options, engine, reterr_message);
	if (r == 0 && options->part.last)
		r = find_last(d, options, reterr_message);
	if (r == 0)
		r = start_lanes(d, reterr_message);
	if (r == 0 && d->overlay)
		r = overlay_start(d->overlay, reterr_message);
	if (r < 0 && d->reading.spills.failure == r)
		return cannot_spill(options, r, reterr_message);
	if (r < 0) {
		if (!*reterr_message)
			(void)message_set(reterr_message, r, "%s: %s", name_of(options),
					  strerror(-r));
		return r;
	}

	*ret_decoder = TAKE(d);
	return 0;
}

int ptd_decoder_new(const struct ptd_options *options, struct ptd_decoder **ret_decoder,
		    char **reterr_message)
{
	return decoder_new_fed(options, NULL, ret_decoder, reterr_message);
}

struct ptd_decoder *ptd_decoder_free(struct ptd_decoder *decoder)
{
	if (!decoder)
		return NULL;

	stop_lanes(decoder);
	free(decoder->lanes);
	for (size_t i = 0; i < _TRACE_COMPLAINTS; i++)
		free(decoder->trace_complaints[i]);
	free(decoder->complaints);
	free(decoder->cpu_stats);
	views_free(decoder->part_views);
	views_free(decoder->views);
	runpool_free(decoder->runs);
	free(decoder->counts);
	extract_free(decoder->extract);
	batchsource_free(decoder->source);
	overlay_free(decoder->overlay);
	free(decoder->unknown_thread);
	cache_free(decoder->cache);
	resolver_free(decoder->resolver);
	codemap_deinit(&decoder->codemap);
	corestacks_free(decoder->core);
	timeline_free(decoder->timeline);
	objects_free(decoder->objects);
	trace_free(decoder->trace);
	reading_deinit(&decoder->reading);
	(void)pthread_mutex_destroy(&decoder->positions_mutex);
	(void)pthread_mutex_destroy(&decoder->fetch_mutex);
	free(decoder->message);
	free(decoder->name);
	free(decoder);
	return NULL;
}

void decoder_set_expander(struct ptd_decoder *decoder, const struct expander *expander)
{
	const bool is_whole = !decoder->extract && !decoder->overlay;

	__atomic_store_n(&decoder->expander, is_whole ? expander : NULL, __ATOMIC_RELEASE);
	for (size_t i = 0; i < decoder->n_lanes && !expander; i++)
		ahead_wait(&decoder->lanes[i]);
}

const struct ptd_info *ptd_decoder_info(const struct ptd_decoder *decoder)
{
	return &decoder->info;
}

/* Return: the lane whose slice begins first; NULL if all lanes have ended. */
static struct ahead *first_lane(const struct ptd_decoder *d)
{
	struct ahead *first = NULL;

	for (size_t i = 0; i < d->n_lanes; i++) {
		struct ahead *lane = &d->lanes[i];

		if (ahead_ready(lane) && (!first || lane->lane.slice.t0 < first->lane.slice.t0))
			first = lane;
	}
	return first;
}

/* Nothing can be decoded any more. */
static int fail(struct ptd_decoder *d, const struct lane *lane, int r)
{
	d->r = r;
	return message_set(&d->message, r,
			   "%s: at byte %" PRIu64 " of the PT of CPU %" PRIu32 ": %s", d->name,
			   lane_offset(lane), lane->slice.cpu, strerror(-r));
}

const char *ptd_decoder_message(const struct ptd_decoder *decoder)
{
	return decoder->r == 0 ? NULL : decoder->message ?: "out of memory";
}

/* Give the blocks of the batch that were not shown before their ids, and symbols. */
static int show_blocks(struct ptd_decoder *d, const struct ahead *lane)
{
	for (size_t i = 0; i < lane->n_new_blocks; i++) {
		const struct ptd_block *block = lane->new_blocks[i];
		int r;

		if (i + 2 * SHOW_PREFETCH < lane->n_new_blocks) {
			cache_prefetch(lane->new_blocks[i + 2 * SHOW_PREFETCH]);
			cache_prefetch_insns(lane->new_blocks[i + SHOW_PREFETCH]);
		}
		r = cache_has_shown(block) ? 0 : cache_show(d->cache, block);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Make the next batch of the lane whose batch the caller had. Return: 0, or negative errno. */
static int refill(struct ptd_decoder *d)
{
	struct ahead *lane = d->given;
	int r;

	if (!lane)
		return 0;
	r = ahead_fill(lane);
	if (r < 0) {
		d->r = check_inputs(d, r, &d->message);
		return d->r ?: fail(d, &lane->lane, r);
	}
	d->given = NULL;
	return 0;
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

/* The next batch of an input that has them. Return: as next_batch(). */
static int next_of_source(struct ptd_decoder *d, struct ptd_batch *ret_batch)
{
	bool is_new = false;
	int r;

	r = d->source->ops->next(d->source, ret_batch, &d->given_slice, &is_new, &d->message);
	if (r > 0) {
		d->r = check_inputs(d, 0, &d->message);
		return d->r ?: PTD_END;
	}
	if (r == 0 && d->source->cpus.n > d->n_cpus)
		r = reserve_cpus(d, d->source->cpus.n);
	if (r == 0 && is_new)
		d->given_slice->id = NO_SLICE;
	d->r = r;
	return r;
}

/* The next batch, as it was decoded. Return: 0; PTD_END; or negative errno. */
static int next_batch(struct ptd_decoder *d, struct ptd_batch *ret_batch)
{
	struct ahead *lane;
	int r;

	if (d->source)
		return next_of_source(d, ret_batch);
	r = refill(d);
	if (r < 0)
		return r;
	lane = first_lane(d);
	/* A read fails itself if its file became shorter; here the rest of the file counts. */
	if (!lane || objects_failure(d->objects)) {
		d->r = check_inputs(d, 0, &d->message);
		return d->r ?: PTD_END;
	}
	if (lane->new_slice)
		lane->lane.slice.id = NO_SLICE;
	r = show_blocks(d, lane);
	if (r < 0)
		return fail(d, &lane->lane, r);
	*ret_batch = (struct ptd_batch){
		.slice = &lane->lane.slice,
		.runs = lane->runs,
		.n_runs = lane->n_runs,
		.marks = lane->marks,
		.n_marks = lane->n_marks,
		.hold = lane->hold,
	};
	ret_batch->symbols = resolver_symbols(d->resolver, &ret_batch->n_symbols);
	d->given = lane;
	d->given_slice = &lane->lane.slice;
	return 0;
}

/* Return: what is counted for the batch that the caller has. */
static struct extract_counts *counts_of_given(const struct ptd_decoder *d)
{
	return &d->counts[d->given ? (size_t)(d->given - d->lanes) : d->source->cpu];
}

/* The whole stream is over: complain about threads that only the overlay knows. Return: PTD_END or
 * -ENOMEM. */
static int end_overlay(struct ptd_decoder *d)
{
	uint32_t pid, tid;
	const size_t n = overlay_n_unknown(d->overlay, &pid, &tid);

	if (n == 0 || d->unknown_thread)
		return PTD_END;
	if (asprintf(&d->unknown_thread,
		     "%s: has nothing of %zu thread%s whose events are to be merged, such as "
		     "%" PRId32 "/%" PRId32,
		     d->name, n, n == 1 ? "" : "s", (int32_t)pid, (int32_t)tid) < 0) {
		d->unknown_thread = NULL;
		return d->r = -ENOMEM;
	}
	d->complaints[d->info.n_complaints++] = d->unknown_thread;
	return PTD_END;
}

/* Put what programs noted themselves into the batch, the next one. Return: 0; or negative errno. */
static int lay_over(struct ptd_decoder *d, struct ptd_batch *batch)
{
	return d->r = overlay_batch(d->overlay, batch, &d->message);
}

/* The batch is what the caller gets. */
static void count_stated(struct ptd_decoder *d, const struct ptd_batch *batch)
{
	for (size_t i = 0; i < batch->n_marks; i++)
		d->n_stated += batch->marks[i].kind == PTD_MARK_STATED;
}

int ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch)
{
	struct ptd_batch *batch = &decoder->batch;
	int r;

	if (decoder->r < 0)
		return decoder->r;
	do {
		struct ptd_batch whole, *next = decoder->extract ? &whole : batch;

		r = next_batch(decoder, next);
		if (r == PTD_END && decoder->overlay && !decoder->extract)
			return end_overlay(decoder);
		if (r == 0 && decoder->overlay)
			r = lay_over(decoder, next);
		if (r != 0)
			return r;
		if (!decoder->extract)
			break;
		r = extract_batch(decoder->extract, &whole, counts_of_given(decoder), batch);
		if (r < 0)
			return decoder->r = r;
	} while (batch->n_runs == 0 && batch->n_stated == 0 && batch->n_marks == 0);

	if (decoder->overlay)
		count_stated(decoder, batch);
	if (decoder->given_slice->id == NO_SLICE)
		decoder->given_slice->id = decoder->n_slices++;
	*ret_batch = batch;
	return 0;
}

int ptd_decoder_next_sideband(struct ptd_decoder *decoder, const struct ptd_sideband **ret_record)
{
	const struct trace *trace = decoder->trace;

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

int ptd_decoder_place(struct ptd_decoder *decoder, uint32_t space, uint64_t t, uint64_t ip,
		      struct ptd_place *ret_place)
{
	const struct space *at = timeline_space(decoder->timeline, space);
	const struct object *object = NULL;
	struct ptd_place place = {};
	uint32_t symbol = PTD_NO_SYMBOL;
	uint64_t end;
	size_t n;
	int r = 0;

	if (at)
		r = codemap_find(&decoder->codemap, at, t, ip, &object, &place.address);
	if (r == 0 && object)
		r = resolver_find(decoder->resolver, object->symbols, place.address, &symbol, &end);
	if (r < 0)
		return r;
	place.object = object ? &object->id : NULL;
	if (symbol != PTD_NO_SYMBOL)
		place.symbol = resolver_symbols(decoder->resolver, &n)[symbol];
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

	(void)decoder;
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
	d->stats.n_cpus = d->source->cpus.n;
	memcpy(d->n_gaps, d->source->n_gaps, sizeof(d->n_gaps));
	for (size_t i = 0; i < d->stats.n_cpus; i++) {
		d->cpu_stats[i] = d->source->cpus.items[i];
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
		.n_cpus = decoder->n_lanes,
		.n_gaps = decoder->n_gaps,
		.gap_bytes = decoder->gap_bytes,
		.n_gap_reasons = _PTD_GAP_REASONS,
		.n_records_unknown = decoder->trace->n_unknown,
		.n_records_bad = decoder->trace->n_skipped + timeline_n_skipped(decoder->timeline),
	};
	if (decoder->overlay) {
		decoder->stats.n_stated = decoder->n_stated;
		if (!decoder->extract)
			decoder->stats.n_stated_left_out =
			    overlay_n_calls(decoder->overlay) - decoder->n_stated;
	}
	if (decoder->source)
		count_source(decoder);
	for (size_t i = 0; i < decoder->n_lanes; i++) {
		const struct lane *lane = &decoder->lanes[i].lane;

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
	*ret_done = *ret_total = 0;
	for (size_t i = 0; i < decoder->n_lanes; i++) {
		const struct lane *lane = &decoder->lanes[i].lane;

		*ret_done += lane->stats.bytes_lost + lane->stats.bytes_decoded +
			     lane->stats.bytes_out_of_scope;
		if (lane->engine)
			*ret_done += engine_decoded(lane->engine) - lane->span_decoded;
		*ret_total += lane->stats.bytes_in;
	}
}
