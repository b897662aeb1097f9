/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Speedscope
 *
 * The calls in the file format of speedscope, a viewer of flame graphs: a profile for each track,
 * whose events open and close frames. A reader refuses frames that do not nest and times that go
 * back, and wants a track as a whole. So all is written when the stream is over.
 *
 * Source: file-format-schema.json of speedscope.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/column.h"
#include "decoder/sink/export/spanlog.h"
#include "decoder/sink/export/viewtracks.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/srcline.h"
#include "ptd/decode.h"

#define EVENT_MAX (2 * COLUMN_MAX + 64) /* bytes of an event */

struct speedscope {
	struct viewtracks tracks;    /* comes first */
	struct ptd_decoder *decoder; /* NULL: no source lines are shown */
	struct spanlog log;
};

/* --- the stream ------------------------------------------------------------------------------- */

static int begin(void *state, const struct viewtrack *track, uint64_t t,
		 const struct open_frame *frame)
{
	struct speedscope *speedscope = state;

	return spanlog_begin(&speedscope->log, track, t, SPAN_FUNCTION + frame->function->id);
}

static int begin_gap(void *state, const struct viewtrack *track, uint64_t t,
		     const struct ptd_mark *mark)
{
	struct speedscope *speedscope = state;

	return spanlog_begin(&speedscope->log, track, t, span_of_mark(mark));
}

static int end(void *state, const struct viewtrack *track, uint64_t t, const struct ptd_call *leave)
{
	struct speedscope *speedscope = state;

	(void)leave;
	return spanlog_end(&speedscope->log, track, t);
}

/* The format has no points in time, and no CPUs. */
static const struct viewtracks_ops ops = {
	.begin = begin,
	.begin_gap = begin_gap,
	.end = end,
};

/* --- the document ----------------------------------------------------------------------------- */

static void put_frame(struct json *json, const char *before, const char *name)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s%s", before, name);
	json_object(json, NULL);
	json_text(json, "name", text);
	json_close(json);
}

/* Write what spans can be, in the order of their numbers. Return: 0 or -ENOMEM. */
static int put_frames(const struct speedscope *speedscope, struct json *json)
{
	const struct ptd_function *const *functions;
	struct ptd_position position;
	size_t n;
	int r = 0;

	json_array(json, "frames");
	for (unsigned int i = 0; i < _PTD_GAP_REASONS; i++)
		put_frame(json, "gap: ", ptd_gap_reason_name(i));
	for (unsigned int i = 0; i < _PTD_MARK_KINDS; i++)
		put_frame(json, "", ptd_mark_kind_name(i));
	functions = ptd_calls_functions(speedscope->tracks.feed.layer, &n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		r = srcline_of_function(speedscope->decoder, functions[i], &position);
		json_object(json, NULL);
		json_text(json, "name", functions[i]->name);
		json_text(json, "file", r > 0 ? position.file : functions[i]->object->name);
		if (r > 0)
			json_number(json, "line", position.line);
		json_close(json);
	}
	json_close(json);
	return r < 0 ? r : 0;
}

static char *put_text(char *to, const char *text, size_t size)
{
	memcpy(to, text, size);
	return to + size;
}

static int put_event(struct ptd_output *output, const struct span_event *event, bool is_first)
{
	char *p;

	if (output_reserve(output, EVENT_MAX) < 0)
		return output->error;
	p = (char *)output->buffer + output->n_used;
	if (!is_first)
		*p++ = ',';
	p = put_text(p, "\n{\"type\":\"", 10);
	*p++ = event->begins ? 'O' : 'C';
	p = put_text(p, "\",\"frame\":", 10);
	p = column_number(p, event->span, 0, ' ');
	p = put_text(p, ",\"at\":", 6);
	p = column_number(p, event->t, 0, ' ');
	*p++ = '}';
	output->n_used = (size_t)((uint8_t *)p - output->buffer);
	return 0;
}

/* Write all events of the track. Return: 0 or negative errno. */
static int put_events(struct speedscope *speedscope, uint32_t track, struct ptd_output *output)
{
	_cleanup_(spanlog_reader_deinit) struct spanlog_reader reader = {};
	struct span_event event;
	bool is_first = true;
	int r;

	r = spanlog_read(&speedscope->log, track, &reader);
	while (r == 0 && (r = spanlog_next(&reader, &event)) == 0) {
		r = put_event(output, &event, is_first);
		is_first = false;
	}
	return r == PTD_END ? 0 : r;
}

static int put_profile(struct speedscope *speedscope, struct json *json,
		       const struct viewtrack *track)
{
	const struct spanlog_track *spans = &speedscope->log.tracks.items[track->id];
	char name[96];
	int r;

	if (track->stack == VIEWTRACK_NONE)
		(void)snprintf(name, sizeof(name), "%.32s %" PRIu32 "/%" PRIu32,
			       viewtrack_comm(track), track->pid, track->tid);
	else
		(void)snprintf(name, sizeof(name), "%.32s %" PRIu32 ", stack %" PRIu32,
			       viewtrack_comm(track), track->pid, track->stack);
	json_object(json, NULL);
	json_text(json, "type", "evented");
	json_text(json, "name", name);
	json_text(json, "unit", speedscope->tracks.clock == PTD_CLOCK_NS ? "nanoseconds" : "none");
	json_number(json, "startValue", spans->first);
	json_number(json, "endValue", spans->last);
	json_array(json, "events");
	r = put_events(speedscope, track->id, json->output);
	json_close(json);
	json_close(json);
	return r;
}

/* Write the profiles, and which is shown at first: that with the most spans. */
static int put_profiles(struct speedscope *speedscope, struct json *json)
{
	uint64_t n_most = 0, n = 0, most = 0;
	int r = 0;

	json_array(json, "profiles");
	for (size_t i = 0; r == 0 && i < speedscope->log.tracks.n; i++) {
		const uint64_t n_spans = speedscope->log.tracks.items[i].n_spans;

		if (n_spans == 0)
			continue;
		if (n_spans > n_most) {
			n_most = n_spans;
			most = n;
		}
		n++;
		r = put_profile(speedscope, json, &speedscope->tracks.all.items[i]);
	}
	json_close(json);
	json_number(json, "activeProfileIndex", most);
	return r;
}

static int speedscope_finish(void *state, const struct ptd_stats *stats, struct ptd_output *output)
{
	struct speedscope *speedscope = state;
	struct json json = json_begin(output);
	char exporter[64];
	int r;

	(void)stats;
	r = viewtracks_end(&speedscope->tracks);
	if (r == 0)
		r = spanlog_finish(&speedscope->log);
	if (r < 0)
		return r;
	(void)snprintf(exporter, sizeof(exporter), "ptdecode %s", ptd_version());
	json_object(&json, NULL);
	json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_text(&json, "exporter", exporter);
	json_object(&json, "shared");
	r = put_frames(speedscope, &json);
	json_close(&json);
	if (r == 0)
		r = put_profiles(speedscope, &json);
	json_close(&json);
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static void speedscope_free(void *state)
{
	struct speedscope *speedscope = state;

	spanlog_deinit(&speedscope->log);
	viewtracks_deinit(&speedscope->tracks);
	free(speedscope);
}

static int speedscope_open(const struct ptd_sink_config *config, struct ptd_output *output,
			   void **ret_state)
{
	struct speedscope *speedscope = calloc(1, sizeof(*speedscope));
	int r;

	(void)output;
	if (!speedscope)
		return -ENOMEM;
	if (config->positions != PTD_SHOW_NO_POSITIONS)
		speedscope->decoder = config->decoder;
	/* What is logged is smaller than what is written of it. */
	speedscope->log.spills.room = config->room ? *config->room : PTD_MAX_SPILL;
	r = viewtracks_open(&speedscope->tracks, &ops, config->info);
	if (r < 0) {
		speedscope_free(speedscope);
		return r;
	}
	*ret_state = speedscope;
	return 0;
}

const struct ptd_sink_ops sink_speedscope = {
	.size = sizeof(sink_speedscope),
	.name = "speedscope",
	.help = "the calls of each thread, for the viewer speedscope",
	.open = speedscope_open,
	.write = viewtracks_sink_write,
	.finish = speedscope_finish,
	.omission = viewtracks_sink_omission,
	.free = speedscope_free,
	.takes_stated = true,
	.writes_last = true,
};
