/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libptd-dlfilter.so: perf script loads it (--dlfilter), decodes, and hands over each branch; what
 * executed becomes the library's stream, and goes to its sinks.
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "decoder/cmd/requested.h"
#include "decoder/dlfilter/branchsource.h"
#include "decoder/dlfilter/perfapi.h"
#include "decoder/pipeline.h"
#include "decoder/sink/sink.h"
#include "decoder/util/batchsource.h"
#include "ptd/decode.h"
#include "util/dirs.h"
#include "util/message.h"
#include "util/vec.h"

struct dlfilter {
	struct requested_outputs outputs;
	struct ptd_decoder *decoder;
	struct batchsource *source; /* the decoder's */
	uint64_t n_branches;
	bool has_branches; /* the event with the id that was asked about last has branches */
	uint64_t asked_id;
	bool has_asked;
	int r; /* what failed first; 0: nothing did */
};

struct perf_dlfilter_fns perf_dlfilter_fns;

const char *filter_description(const char **ret_long)
{
	*ret_long =
	    "  --dlarg 'VERB...'   an output of ptdecode with its options, such as\n"
	    "                      --dlarg 'calls --json -o FILE'; may be given several times\n"
	    "  perf script must decode branches: --itrace=b\n";
	return "calls, functions and exports of ptdecode(1) from what perf decodes";
}

/* --- opening ---------------------------------------------------------------------------------- */

static int parse_args(struct dlfilter *filter, int n, char **args)
{
	int r = 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = requested_parse(&filter->outputs, args[i]);
	if (r == 0 && n == 0) {
		log_error("--dlarg is missing: expected a verb of ptdecode, as in --dlarg calls");
		r = -EINVAL;
	}
	return r;
}

/* Return: whether perf has the file at @path open: it reads it. */
static bool is_open(const char *path)
{
	_cleanup_(dirs_closep) DIR *dir = opendir("/proc/self/fd");
	struct stat st, other;
	struct dirent *entry;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	while (dir && dirs_next(dir, &entry) > 0)
		if (fstat(atoi(entry->d_name), &other) == 0 && other.st_dev == st.st_dev &&
		    other.st_ino == st.st_ino)
			return true;
	return false;
}

static int open_output(struct dlfilter *filter, struct requested_output *o)
{
	const char *path = o->path ?: "standard output";
	char *message = NULL;
	int r;

	if (o->path && is_open(o->path)) {
		log_error("%s: will not be written: perf reads it, or another output goes there",
			  path);
		return -EEXIST;
	}
	r = o->config.fd = sink_target_open(o->ops, o->path);
	if (r < 0)
		return log_error_errno(r, "%s: cannot write: %m", path);
	o->config.is_emptied = o->path;
	o->config.info = ptd_decoder_info(filter->decoder);
	o->config.decoder = filter->decoder;
	r = sink_new(o->ops, &o->config, &o->sink, &message);
	if (r < 0 && message)
		log_error("%s", message);
	else if (r < 0)
		(void)log_error_errno(r, "%s: cannot write: %m", path);
	free(message);
	return r;
}

static int make_source(void *userdata, struct objects *objects, struct resolver *resolver,
		       struct batchsource **ret_source)
{
	struct dlfilter *filter = userdata;
	const int r = branchsource_new(objects, resolver, ret_source);

	filter->source = r < 0 ? NULL : *ret_source;
	return r;
}

static int open_decoder(struct dlfilter *filter)
{
	const struct decoder_config config = { .feed =
						   &(struct decoder_feed){ make_source, filter } };
	_cleanup_(freep) char *message = NULL, *buildids = NULL;
	struct ptd_options options = { .size = sizeof(options), .input = "perf script" };
	const char *home = getenv("HOME");
	int r;

	buildids = home ? message_text("%s/.debug", home) : NULL;
	if (home && !buildids)
		return log_error_errno(-ENOMEM, "%m");
	options.buildid_dir = buildids;
	r = decoder_new(&options, &config, &filter->decoder, &message);
	if (r < 0)
		log_error("%s", message ?: strerror(-r));
	return r;
}

static void free_filter(struct dlfilter *filter)
{
	for (size_t i = 0; i < filter->outputs.n; i++) {
		struct requested_output *o = &filter->outputs.items[i];

		if (o->sink)
			sink_free(o->sink);
		else
			(void)fd_close(o->config.fd);
	}
	requested_deinit(&filter->outputs);
	ptd_decoder_free(filter->decoder);
	free(filter);
}

int start(void **ret_data, void *ctx)
{
	struct dlfilter *filter;
	int n = 0, r;
	char **args;

	if (!perf_dlfilter_fns.object_code) {
		log_error("this perf is too old: its dlfilters cannot read code");
		return -EOPNOTSUPP;
	}
	filter = calloc(1, sizeof(*filter));
	if (!filter)
		return log_error_errno(-ENOMEM, "%m");
	args = perf_dlfilter_fns.args(ctx, &n);
	r = parse_args(filter, args ? n : 0, args);
	if (r == 0)
		r = open_decoder(filter);
	for (size_t i = 0; r == 0 && i < filter->outputs.n; i++)
		r = open_output(filter, &filter->outputs.items[i]);
	if (r < 0) {
		free_filter(filter);
		return r;
	}
	*ret_data = filter;
	return 0;
}

/* --- the branches ----------------------------------------------------------------------------- */

static void set_place(const struct perf_dlfilter_al *al, struct branch_place *ret_place)
{
	*ret_place = (struct branch_place){ .object = al->dso,
					    .address = al->addr,
					    .symbol = al->sym,
					    .symbol_start = al->sym_start,
					    .symbol_end = al->sym_end,
					    .mode = al->is_64_bit ? 64 : 32 };
	if (al->buildid && al->buildid_size <= BUILDID_MAX) {
		memcpy(ret_place->buildid.bytes, al->buildid, al->buildid_size);
		ret_place->buildid.size = (uint8_t)al->buildid_size;
	}
}

/* What perf was asked about one branch. */
struct asked {
	void *ctx;
	VEC(struct perf_dlfilter_al) places; /* in use */
};

static void end_use(void *ctx, struct perf_dlfilter_al *al)
{
	if (perf_dlfilter_fns.al_cleanup)
		perf_dlfilter_fns.al_cleanup(ctx, al);
}

static bool find_place(void *userdata, uint64_t ip, struct branch_place *ret_place)
{
	struct perf_dlfilter_al al = { .size = sizeof(al) };
	struct asked *asked = userdata;

	if (perf_dlfilter_fns.resolve_address(asked->ctx, ip, &al) != 0)
		return false;
	if (vec_push(&asked->places, al) < 0) {
		end_use(asked->ctx, &al);
		return false;
	}
	set_place(&al, ret_place);
	return true;
}

static size_t read_code(void *userdata, uint64_t ip, void *ret_bytes, size_t size)
{
	void *ctx = ((const struct asked *)userdata)->ctx;
	size_t n = 0;

	while (n < size) {
		const int32_t r = perf_dlfilter_fns.object_code(
		    ctx, ip + n, (uint8_t *)ret_bytes + n, (uint32_t)(size - n));

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	return n;
}

/* Return: whether the sample is a branch that perf decoded; others have the flags of one, too. */
static bool is_branch(struct dlfilter *filter, const struct perf_dlfilter_sample *sample, void *ctx)
{
	const struct perf_event_attr *attr;

	if (!(sample->flags & PERF_DLFILTER_FLAG_BRANCH))
		return false;
	if (!filter->has_asked || filter->asked_id != sample->id) {
		attr = perf_dlfilter_fns.attr(ctx);
		filter->has_branches = attr && attr->type == PERF_TYPE_HARDWARE &&
				       attr->config == PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
		filter->asked_id = sample->id;
		filter->has_asked = true;
	}
	return filter->has_branches;
}

/* Give the outputs what there is. Return: 0, or negative errno after it was logged. */
static int write_batches(struct dlfilter *filter)
{
	const struct ptd_batch *batch;
	int r;

	while ((r = ptd_decoder_next(filter->decoder, &batch)) == 0) {
		for (size_t i = 0; i < filter->outputs.n; i++) {
			const struct requested_output *o = &filter->outputs.items[i];

			r = sink_wants_batches(o->sink) ? sink_batch(o->sink, batch) : 0;
			if (r < 0)
				return log_error_errno(r, "%s: cannot write: %m",
						       o->path ?: "standard output");
		}
	}
	if (r < 0)
		log_error("%s", ptd_decoder_message(filter->decoder));
	return r < 0 ? r : 0;
}

/* Return: as write_batches(). */
static int add_branch(struct dlfilter *filter, const struct branch *branch,
		      const struct branch_memory *memory)
{
	int r = branchsource_add(filter->source, branch, memory);

	if (r == BRANCHSOURCE_FULL) {
		r = write_batches(filter);
		if (r < 0)
			return r;
		r = branchsource_add(filter->source, branch, memory);
	}
	return r < 0 ? log_error_errno(r, "cannot take a branch: %m") : r;
}

static int take_branch(struct dlfilter *filter, const struct perf_dlfilter_sample *sample,
		       void *ctx)
{
	const struct perf_dlfilter_al *al = perf_dlfilter_fns.resolve_ip(ctx);
	struct asked asked = { .ctx = ctx };
	const struct branch_memory memory = { find_place, read_code, &asked };
	struct branch branch = {
		.cpu = sample->cpu < 0 ? UINT32_MAX : (uint32_t)sample->cpu,
		.pid = (uint32_t)sample->pid,
		.tid = (uint32_t)sample->tid,
		.t = sample->time,
		.from = sample->ip,
		.to = sample->addr,
		.is_async =
		    sample->flags & (PERF_DLFILTER_FLAG_ASYNC | PERF_DLFILTER_FLAG_TX_ABORT),
		.aborts = sample->flags & PERF_DLFILTER_FLAG_TX_ABORT,
	};
	int r;

	if (al) {
		branch.comm = al->comm;
		set_place(al, &branch.at);
	}
	r = add_branch(filter, &branch, &memory);
	vec_deinit_each(&asked.places, place, end_use(ctx, place));
	return r;
}

int filter_event(void *data, const struct perf_dlfilter_sample *sample, void *ctx)
{
	struct dlfilter *filter = data;

	if (!is_branch(filter, sample, ctx))
		return 1;
	filter->n_branches++;
	filter->r = take_branch(filter, sample, ctx);
	return filter->r < 0 ? filter->r : 1;
}

/* --- closing ---------------------------------------------------------------------------------- */

static int finish(struct dlfilter *filter)
{
	int r;

	if (filter->n_branches == 0)
		log_warning("perf decoded no branches: --itrace=b asks for them");
	r = write_batches(filter);
	for (size_t i = 0; r == 0 && i < filter->outputs.n; i++) {
		struct requested_output *o = &filter->outputs.items[i];
		const char *path = o->path ?: "standard output", *omission;

		r = sink_finish(o->sink, ptd_decoder_stats(filter->decoder));
		omission = sink_omission(o->sink);
		if (r < 0)
			(void)log_error_errno(r, "%s: cannot write: %m", path);
		else if (omission)
			log_warning("%s: %s", path, omission);
	}
	return r;
}

int stop(void *data, void *ctx)
{
	struct dlfilter *filter = data;
	int r;

	if (!filter)
		return 0;
	r = filter->r < 0 ? filter->r : finish(filter);
	free_filter(filter);
	return r;
}
