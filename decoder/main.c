/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptdecode: the command over libptdecode. */

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base.h"
#include "base/log.h"
#include "decoder/command.h"
#include "decoder/fetcher.h"
#include "decoder/sandbox.h"
#include "decoder/symbol/debugfile.h"
#include "decoder/util/spill.h"
#include "ptd/decode.h"
#include "ptd/sink.h"
#include "ptd/snapshot.h"

static bool is_file(const char *path, const struct stat *st)
{
	struct stat other;

	return path && stat(path, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

/* Would writing to @path destroy what is read, or what another output writes? */
static bool is_taken(const struct command *c, size_t output)
{
	const char *const files[] = { "data", "manifest", "objects.map", "SHA256SUMS" };
	const char *path = c->outputs[output].path;
	char *inside;
	struct stat st;
	bool taken;

	if (!path || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	taken = is_file(c->options.input, &st) || is_file(c->options.raw_pt, &st);
	for (size_t i = 0; i < c->code.n; i++)
		taken = taken || is_file(c->code.items[i].path, &st);
	for (size_t i = 0; i < output; i++)
		taken = taken || is_file(c->outputs[i].path, &st);
	for (size_t i = 0; c->options.input && i < ARRAY_LEN(files); i++) {
		if (asprintf(&inside, "%s/%s", c->options.input, files[i]) < 0)
			return true;
		taken = taken || is_file(inside, &st);
		free(inside);
	}
	return taken;
}

static int open_outputs(struct command *c, const struct ptd_info *info)
{
	for (size_t i = 0; i < c->n_outputs; i++) {
		struct output *o = &c->outputs[i];
		int r;

		if (is_taken(c, i)) {
			log_error(
			    "%s: will not be written: it is read, or another output goes there",
			    o->path);
			return -EEXIST;
		}
		r = o->ops->open(o->ops, o->path, info, &o->sink);
		if (r < 0)
			return log_error_errno(r, "%s: cannot write: %m",
					       o->path ? o->path : "standard output");
	}
	return 0;
}

static void show_progress(const struct ptd_decoder *d, bool last)
{
	static struct timespec shown;
	struct timespec now;
	uint64_t done, total;

	if (!isatty(STDERR_FILENO) || isatty(STDOUT_FILENO))
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (!shown.tv_sec)
		shown = now;
	if (now.tv_sec == shown.tv_sec && !last)
		return;

	shown = now;
	ptd_decoder_progress(d, &done, &total);
	fprintf(stderr, last ? "\r\033[K" : "\rptdecode: %3.0f %% of %.1f MiB of PT ",
		total ? 100.0 * (double)done / (double)total : 100.0, (double)total / (1 << 20));
}

static int cannot_write(const struct output *o, int r)
{
	return log_error_errno(r, "%s: cannot write: %m", o->path ? o->path : "standard output");
}

static int list_events(struct command *c, struct ptd_decoder *d)
{
	const struct ptd_event *event;
	int r;

	while (ptd_decoder_next_event(d, &event) == 0) {
		for (size_t i = 0; i < c->n_outputs; i++) {
			struct output *o = &c->outputs[i];

			r = o->ops->event ? o->ops->event(o->sink, event) : 0;
			if (r < 0)
				return cannot_write(o, r);
		}
	}
	return 0;
}

/* Return: PTD_END, or negative errno. */
static int decode_batches(struct command *c, struct ptd_decoder *d)
{
	const struct ptd_batch *batch;
	int r;

	while ((r = ptd_decoder_next(d, &batch)) == 0) {
		for (size_t i = 0; i < c->n_outputs; i++) {
			struct output *o = &c->outputs[i];

			r = o->ops->batch ? o->ops->batch(o->sink, batch) : 0;
			if (r < 0)
				return cannot_write(o, r);
		}
		show_progress(d, false);
	}
	show_progress(d, true);
	return r < 0 ? log_error_errno(r, "cannot decode on: %m") : r;
}

/* Does a sink want batches, or else events? */
static bool wants(const struct command *c, bool batches)
{
	for (size_t i = 0; i < c->n_outputs; i++)
		if (batches ? !!c->outputs[i].ops->batch : !!c->outputs[i].ops->event)
			return true;
	return false;
}

static int decode(struct command *c, struct ptd_decoder *d)
{
	int r = 0;

	if (wants(c, false))
		r = list_events(c, d);
	if (r == 0 && wants(c, true))
		r = decode_batches(c, d);
	if (ptd_decoder_info(d)->truncated_at)
		log_warning("%s: ends inside the record at byte %" PRIu64
			    "; what is before it was decoded",
			    c->options.input, ptd_decoder_info(d)->truncated_at);
	for (size_t i = 0; i < ptd_decoder_info(d)->n_complaints; i++)
		log_warning("%s", ptd_decoder_info(d)->complaints[i]);
	if (r < 0)
		return r;

	for (size_t i = 0; i < c->n_outputs; i++) {
		struct output *o = &c->outputs[i];
		const char *omission;

		r = o->ops->finish(o->sink, ptd_decoder_stats(d));
		if (r < 0)
			return cannot_write(o, r);
		omission = o->ops->omission ? o->ops->omission(o->sink) : NULL;
		if (omission)
			log_warning("%s: %s", o->path ? o->path : "standard output", omission);
	}
	return 0;
}

/*
 * Some gaps are no fault of the input: the CPU overflowed, an overwritten ring begins mid-way, or
 * the recorder lost something.
 */
static bool is_no_fault(enum ptd_gap_reason reason, bool raw)
{
	switch (reason) {
	case PTD_GAP_OVERFLOW:
	case PTD_GAP_NO_SYNC:
	case PTD_GAP_BEFORE_SIDEBAND:
	case PTD_GAP_LOST:
	case PTD_GAP_TRUNCATED:
	case PTD_GAP_PARTIAL:
	case PTD_GAP_COLLISION:
	case PTD_GAP_OVERWRITTEN:
	case PTD_GAP_LOST_RECORDS:
	case PTD_GAP_LOST_SAMPLES:
		return true;
	case PTD_GAP_EMPTY:
		return !raw;
	default:
		return false;
	}
}

/* Whether the input was damaged or code was missing. */
static bool is_damaged(const struct command *c, struct ptd_decoder *d)
{
	const struct ptd_stats *stats = ptd_decoder_stats(d);

	if (ptd_decoder_info(d)->truncated_at)
		return true;
	if (!wants(c, true))
		return false;
	for (size_t i = 0; i < _PTD_GAP_REASONS; i++) {
		if (stats->n_gaps[i] && !is_no_fault((enum ptd_gap_reason)i, c->options.raw_pt))
			return true;
	}
	return false;
}

/* That of a snapshot, which has what it needs; another recording's objects are where they were
 * mapped from. */
static bool has_manifest(const char *input)
{
	_cleanup_(freep) char *manifest = NULL;

	return asprintf(&manifest, "%s/" PTD_SNAPSHOT_MANIFEST, input) >= 0 &&
	       access(manifest, F_OK) == 0;
}

/* Nothing foreign has been read yet. */
static int enter_sandbox(const struct command *c)
{
	const struct ptd_options *o = &c->options;
	struct sandbox_root roots[COMMAND_OUTPUTS_MAX + 6], *root = roots;
	char *parents[COMMAND_OUTPUTS_MAX] = {};
	int r = 0;

	spill_prepare();
	*root++ = (struct sandbox_root){ .path = DEBUGFILE_SYSTEM_DIR };
	*root++ = (struct sandbox_root){ .path = o->input ? o->input : o->raw_pt };
	if (o->debug_dir)
		*root++ = (struct sandbox_root){ .path = o->debug_dir };
	if (o->buildid_dir)
		*root++ = (struct sandbox_root){ .path = o->buildid_dir };
	if (o->symfs)
		*root++ = (struct sandbox_root){ .path = o->symfs };
	if (o->raw_pt || !has_manifest(o->input))
		*root++ = (struct sandbox_root){ .path = "/" };
	for (size_t i = 0; i < c->n_outputs && r == 0; i++) {
		if (!c->outputs[i].path)
			continue;
		parents[i] = strdup(c->outputs[i].path);
		r = parents[i] ? 0 : -ENOMEM;
		*root++ = (struct sandbox_root){ .path = parents[i] ? dirname(parents[i]) : "",
						 .writable = true };
	}
	if (r == 0)
		r = sandbox_enter(roots, (size_t)(root - roots));
	for (size_t i = 0; i < c->n_outputs; i++)
		free(parents[i]);
	return r < 0 ? log_error_errno(r, "cannot confine this process: %m") : 0;
}

/* Only on demand, and by a process that reads nothing foreign. */
static int start_fetcher(struct command *c, struct fetcher *fetcher)
{
	char *message = NULL;
	int r;

	if (!c->debuginfod)
		return 0;
	r = fetcher_start(fetcher, &message);
	if (r < 0)
		command_log(r, message);
	c->options.fetch = fetcher->socket;
	return r;
}

int main(int argc, char **argv)
{
	struct fetcher fetcher = {};
	struct ptd_decoder *d = NULL;
	char *message = NULL;
	struct command c;
	int r, status;

	/* What was recorded is as secret as the memory it came from. */
	(void)umask(077);
	status = command_parse(&c, argc, argv);
	if (status == STATUS_OK) {
		status = STATUS_FAILED;
		r = start_fetcher(&c, &fetcher);
		if (r == 0)
			r = enter_sandbox(&c);
		if (r == 0 && (r = ptd_decoder_new(&c.options, &d, &message)) < 0)
			command_log(r, message);
		if (r == 0 && open_outputs(&c, ptd_decoder_info(d)) == 0 && decode(&c, d) == 0)
			status = is_damaged(&c, d) ? STATUS_GAPS : STATUS_OK;
	}

	for (size_t i = 0; i < c.n_outputs; i++)
		if (c.outputs[i].sink)
			c.outputs[i].ops->free(c.outputs[i].sink);
	ptd_decoder_free(d);
	fetcher_stop(&fetcher);
	command_deinit(&c);
	return status;
}
