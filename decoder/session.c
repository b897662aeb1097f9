/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/calllog/calllog.h"
#include "decoder/calllog/fdrlog.h"
#include "decoder/calllog/ovnilog.h"
#include "decoder/drmemtrace/tracedir.h"
#include "decoder/drmemtrace/tracesource.h"
#include "decoder/file/input.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/overlay.h"
#include "decoder/pipeline.h"
#include "decoder/pt/errata.h"
#include "decoder/sideband/timeline.h"
#include "decoder/stream/extract.h"
#include "decoder/symbol/resolver.h"
#include "decoder/util/batchsource.h"
#include "ptd/snapshot.h"
#include "util/message.h"
#include "util/pieces.h"

/* --- raw space -------------------------------------------------------------------------------- */

/*
 * The address space of a bare PT stream: no records say what was mapped, so the caller of the
 * library says which pieces of files were at which addresses.
 */

/*
 * Make a space in which the @n_code pieces of @code are mapped, a later piece over earlier ones.
 * The files become objects of @objects, which must outlive the space; the caller frees the space.
 *
 * Return: 0; or negative errno and @reterr_message, which names the file; the caller frees it.
 */
static int rawspace_new(const struct ptd_raw_code *code, size_t n_code, struct objects *objects,
			struct space **ret_space, char **reterr_message)
{
	_cleanup_(space_freep) struct space *space = NULL;
	const struct object *object = NULL;
	int r;

	r = space_new(0, NULL, 0, &space);
	if (r < 0)
		return r;

	for (size_t i = 0; i < n_code; i++) {
		if (i == 0 || strcmp(code[i].path, code[i - 1].path) != 0) {
			r = objects_add_file(objects, code[i].path, &object);
			if (r < 0)
				return message_set(reterr_message, r, "%s: cannot read: %s",
						   code[i].path, strerror(-r));
		}
		r = space_map(space, &(struct mapping){ .start = code[i].address,
							.size = code[i].size,
							.offset = code[i].offset,
							.object = object });
		if (r < 0)
			return message_set(reterr_message, r,
					   "%s: %#" PRIx64 " bytes do not fit at %#" PRIx64,
					   code[i].path, code[i].size, code[i].address);
	}

	*ret_space = TAKE(space);
	return 0;
}

/* --- session ---------------------------------------------------------------------------------- */

/* Ask the caller for a file, one at a time. */
static int fetch_one(void *userdata, enum ptd_fetch what, const uint8_t *build_id, size_t size,
		     char **ret_path)
{
	struct session *s = userdata;
	int r;

	(void)pthread_mutex_lock(&s->fetch_mutex);
	r = s->fetch.get(s->fetch.userdata, what, build_id, size, ret_path);
	(void)pthread_mutex_unlock(&s->fetch_mutex);
	return r;
}

static int look_in_places(struct session *s, const struct ptd_options *o)
{
	s->fetch = (struct fetch){ o->fetch, o->userdata };
	return objects_look_in(
	    s->objects, &(struct objects_places){ .buildid_dir = o->buildid_dir,
						  .symfs = o->symfs,
						  .debug_dir = o->debug_dir,
						  .fetch = { o->fetch ? fetch_one : NULL, s } });
}

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

/* A bare PT stream; the caller says what was mapped. */
static int open_bare(struct session *s, const struct ptd_options *o, char **reterr_message)
{
	struct space *space = NULL;
	int r;

	r = input_open_bare(o->raw_pt, &s->reading, &s->trace, reterr_message);
	if (r == 0 && o->raw_filter)
		r = read_filter(o->raw_filter, &s->trace->facts.filters, reterr_message);
	if (r < 0)
		return r;
	r = objects_new(NULL, &s->objects);
	if (r == 0)
		r = look_in_places(s, o);
	if (r < 0)
		return r;
	r = rawspace_new(o->raw_code, o->n_raw_code, s->objects, &space, reterr_message);
	if (r < 0)
		return r;
	return timeline_new_bare(space, &s->timeline);
}

const char *session_name_of(const struct ptd_options *options)
{
	return options->input ?: options->raw_pt;
}

/* Return: the input if it is a directory, which may hold objects, too; else NULL. */
static const char *input_dir(const struct ptd_options *o)
{
	struct stat st;

	return o->input && stat(o->input, &st) == 0 && S_ISDIR(st.st_mode) ? o->input : NULL;
}

/* Add a complaint. Return: 0 or -ENOMEM. */
static int complain(struct session *s, const char *text)
{
	const int r = vec_push(&s->complaints, text);

	s->info.complaints = s->complaints.items;
	s->info.n_complaints = s->complaints.n;
	return r;
}

/* The same of a text that is taken over; NULL: there was no memory for it. */
static int complain_of(struct session *s, char *text)
{
	if (!text || vec_push(&s->texts, text) < 0) {
		free(text);
		return -ENOMEM;
	}
	return complain(s, text);
}

/* Collect the complaints of the trace, of the timeline, and of @log, which may be NULL. */
static int collect_complaints(struct session *s, const char *name, const struct calllog *log)
{
	const char *const *others;
	size_t n_others;
	int r = 0;

	others = timeline_complaints(s->timeline, &n_others);
	for (size_t i = 0; i < _TRACE_COMPLAINTS && r == 0; i++)
		if (s->trace->complaints[i])
			r = complain_of(s, message_text("%s: %s", name, s->trace->complaints[i]));
	for (size_t i = 0; i < n_others && r == 0; i++)
		r = complain(s, others[i]);
	for (size_t i = 0; log && i < log->n_complaints && r == 0; i++)
		r = complain(s, log->complaints[i]);
	return r;
}

/* A perf.data file, a directory of them, or a snapshot. */
static int open_recording(struct session *s, const struct ptd_options *o, char **reterr_message)
{
	int r;

	r = input_open(o->input, o->force, &s->reading, &s->trace, reterr_message);
	if (r < 0)
		return r;
	r = objects_new(input_dir(o), &s->objects);
	if (r == -EBADMSG)
		return message_set(
		    reterr_message, r,
		    "%s/" PTD_SNAPSHOT_OBJECTS_MAP
		    ": expected lines of a build-id or \"sha256:\" and a hash, a tab, "
		    "and a path",
		    o->input);
	if (r < 0)
		return r;
	r = look_in_places(s, o);
	if (r < 0)
		return r;
	return timeline_new(s->trace, s->objects, &s->timeline);
}

static int make_source(struct session *s, const struct ptd_options *o,
		       const struct decoder_feed *feed, char **reterr_message)
{
	struct calllog *log;
	int r;

	if (feed)
		return feed->make(feed->userdata, s->objects, s->resolver, &s->source);
	if (tracedir_is(o->input))
		return tracesource_new(o->input, s->objects, s->resolver, &s->source,
				       reterr_message);
	if (fdrlog_is(o->input))
		r = fdrlog_open(o->input, o->instr_map, s->objects, s->resolver, &log,
				reterr_message);
	else
		r = ovnilog_open(o->input, 0, s->objects, s->resolver, &log, reterr_message);
	if (r < 0)
		return r;
	r = callsource_new(log, &s->source);
	if (r < 0)
		calllog_free(log);
	return r;
}

static bool has_batches(const char *input)
{
	return fdrlog_is(input) || tracedir_is(input) || ovnilog_is(input);
}

/* Something that has batches, which is a trace without queues. */
static int open_batches(struct session *s, const struct ptd_options *o,
			const struct decoder_feed *feed, char **reterr_message)
{
	struct space *space;
	int r;

	s->trace = calloc(1, sizeof(*s->trace));
	if (!s->trace)
		return -ENOMEM;
	r = objects_new(NULL, &s->objects);
	if (r == 0)
		r = look_in_places(s, o);
	if (r == 0)
		r = space_new(0, NULL, 0, &space);
	if (r == 0)
		r = timeline_new_bare(space, &s->timeline);
	if (r == 0)
		r = make_source(s, o, feed, reterr_message);
	if (r < 0)
		return r;
	s->info.clock = s->source->clock;
	s->info.realtime_offset_ns = s->source->realtime_offset_ns;
	s->info.logs_calls = s->source->ops->next_logged;
	s->info.complaints = s->source->complaints;
	s->info.n_complaints = s->source->n_complaints;
	return 0;
}

/* Open the log of what programs noted themselves. Return: 0 and @ret_log, which belongs to the
 * decoder; or negative errno and @reterr_message. */
static int open_overlay(struct session *s, const struct ptd_options *o,
			const struct calllog **ret_log, char **reterr_message)
{
	struct calllog *log;
	int r;

	if (s->info.clock != PTD_CLOCK_NS)
		return message_set(reterr_message, -EINVAL,
				   "%s: has no times in ns, by which events could be merged",
				   session_name_of(o));
	if (!ovnilog_is(o->ovni))
		return message_set(reterr_message, -EINVAL, "%s: is no trace of ovni", o->ovni);
	r = ovnilog_open(o->ovni, s->trace->facts.monotonic_offset_ns, s->objects, s->resolver,
			 &log, reterr_message);
	if (r < 0)
		return r;
	r = overlay_new(log, &s->overlay);
	if (r < 0)
		calllog_free(log);
	else
		*ret_log = log;
	return r;
}

static int open_input(struct session *s, const struct ptd_options *o,
		      const struct decoder_feed *feed, char **reterr_message)
{
	const struct trace_facts *facts;
	const struct calllog *log = NULL;
	uint32_t errata;
	int r;

	if (feed || (o->input && has_batches(o->input))) {
		if (o->ovni)
			return message_set(reterr_message, -EINVAL,
					   "%s: is no recording, with which events could be merged",
					   o->input);
		return open_batches(s, o, feed, reterr_message);
	}
	r = o->input ? open_recording(s, o, reterr_message) : open_bare(s, o, reterr_message);
	if (r < 0)
		return r;

	if (filtered_find(s->trace, &s->filtered) == FILTERED_TOO_MANY)
		s->trace->complaints[TRACE_COMPLAINT_FILTER] =
		    "its address filter is not used: what it names was mapped at more than 4 "
		    "addresses";

	facts = &s->trace->facts;
	if (!errata_find(o->cpu_family ? o->cpu_family : facts->cpu_family,
			 o->cpu_family ? o->cpu_model : facts->cpu_model, &errata))
		s->trace->complaints[TRACE_COMPLAINT_CPU] =
		    "the model of its CPU is not known: errata are not worked around";
	s->info.clock = !facts->has_tsc      ? PTD_CLOCK_NONE
			: facts->clock.valid ? PTD_CLOCK_NS
					     : PTD_CLOCK_TSC;
	s->info.realtime_offset_ns = facts->realtime_offset_ns;
	if (s->info.clock == PTD_CLOCK_NS)
		s->info.snapshot_taken = facts->snapshot_taken;
	s->info.bytes_overwritten = facts->bytes_overwritten;
	s->info.complete_since = facts->complete_since;
	s->info.truncated_at = s->trace->truncated_at;
	if (o->ovni)
		r = open_overlay(s, o, &log, reterr_message);
	return r < 0 ? r : collect_complaints(s, session_name_of(o), log);
}

struct engine_config session_engine_config(const struct session *session,
					   const struct ptd_options *options)
{
	const struct ptd_options *o = options;
	const struct trace_facts *facts = &session->trace->facts;
	struct engine_config c = {
		.cpu_family = facts->cpu_family,
		.cpu_model = facts->cpu_model,
		.mtc_freq = o->mtc_freq ? o->mtc_freq : facts->mtc_freq,
		.nom_freq = o->nom_freq ? o->nom_freq : facts->nom_freq,
		.cpuid_15_eax = o->cpuid_15_eax ? o->cpuid_15_eax : facts->tsc_ctc_d,
		.cpuid_15_ebx = o->cpuid_15_ebx ? o->cpuid_15_ebx : facts->tsc_ctc_n,
		.has_events = facts->has_events,
		.has_threads = !facts->is_bare && facts->has_tsc,
	};

	if (o->cpu_family) {
		c.cpu_family = o->cpu_family;
		c.cpu_model = o->cpu_model;
	}
	static_assert(FILTERED_RANGES_MAX <= ENGINE_FILTERS_MAX, "an engine takes all");
	for (; c.n_filters < session->filtered.n; c.n_filters++) {
		const struct filtered_range *range = &session->filtered.ranges[c.n_filters];

		c.filters[c.n_filters] = (struct engine_filter){ .first = range->first,
								 .last = range->last,
								 .stops = range->stops };
	}
	return c;
}

static int say_other(const struct session *session, uint64_t offset, char **reterr_message)
{
	return message_set(reterr_message, -EKEYREJECTED,
			   "%s/" PTD_SNAPSHOT_DATA
			   " is not the file that was written: from byte %" PRIu64
			   " on it has another SHA-256 than " PTD_SNAPSHOT_PIECES
			   " says (--force decodes it all the same)",
			   session->name, offset);
}

static int say_cut(const struct reading_file *file, off_t size, char **reterr_message)
{
	return message_set(
	    reterr_message, -ESTALE,
	    "%s: became shorter while it was decoded: it had %jd bytes, and has %jd now",
	    file->path, (intmax_t)file->size, (intmax_t)size);
}

int session_check(const struct session *session, int r, char **reterr_message)
{
	const char *failure = objects_failure(session->objects);
	uint64_t offset;
	const struct reading_file *file;
	off_t size;

	/* What was decoded meanwhile may have gaps, and lack names, where the file has none. */
	if (failure)
		return message_set(reterr_message, -ESTALE, "%s", failure);
	if (r == -EKEYREJECTED && session->reading.pieces &&
	    pieces_failed(session->reading.pieces, &offset))
		return say_other(session, offset, reterr_message);
	file = reading_find_cut(&session->reading, &size);
	return file ? say_cut(file, size, reterr_message) : 0;
}

int session_open(struct session *session, const struct ptd_options *options,
		 const struct decoder_feed *feed, char **reterr_message)
{
	int r;

	*session = (struct session){
		.reading = { .threads = options->threads,
			     .is_part = extract_is_part(&options->part),
			     .all_processes = options->all_processes,
			     .spills.room = options->max_spill ?: PTD_MAX_SPILL,
			     .progress = { .report = options->opening,
					   .userdata = options->userdata } },
	};
	(void)pthread_mutex_init(&session->fetch_mutex, NULL);
	session->name = strdup(session_name_of(options));
	if (!session->name)
		return -ENOMEM;
	r = resolver_new(&session->resolver);
	return r < 0 ? r : open_input(session, options, feed, reterr_message);
}

void session_deinit(struct session *session)
{
	vec_deinit_each(&session->texts, text, free(*text));
	vec_deinit(&session->complaints);
	batchsource_free(session->source);
	overlay_free(session->overlay);
	resolver_free(session->resolver);
	timeline_free(session->timeline);
	objects_free(session->objects);
	trace_free(session->trace);
	reading_deinit(&session->reading);
	(void)pthread_mutex_destroy(&session->fetch_mutex);
	free(session->name);
}

int session_end(struct session *session, const struct overlay *overlay, bool lacks_kernel)
{
	uint32_t pid, tid;
	const size_t n = overlay ? overlay_n_unknown(overlay, &pid, &tid) : 0;
	int r = 0;

	if (session->has_ended)
		return 0;
	session->has_ended = true;
	if (n > 0)
		r = complain_of(
		    session,
		    message_text("%s: has nothing of %zu thread%s whose events are to be merged, "
				 "such as %" PRId32 "/%" PRId32,
				 session->name, n, plural(n), (int32_t)pid, (int32_t)tid));
	if (r == 0 && lacks_kernel)
		r = complain_of(
		    session,
		    message_text("%s: has no copy of the kernel's code, which perf record --kcore "
				 "makes: what the kernel ran is not listed (vmlinux is not used: a "
				 "kernel changes its code when it starts)",
				 session->name));
	return r;
}
