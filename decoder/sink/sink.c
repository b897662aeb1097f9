/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The files and directories that sinks write to, and a sink of any kind. */

#include "decoder/sink/sink.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "decoder/sink/callsieve.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/worker.h"
#include "ptd/decode.h"
#include "util/dirs.h"
#include "util/message.h"

#define ROWS_SHOWN 20 /* of a table, unless the user says how many */

DEFINE_CLEANUP(struct sink *, sink_free);

/* --- targets ---------------------------------------------------------------------------------- */

static bool is_among(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/*
 * Check that the directory has no entry other than @names. Return: 0; -ENOTEMPTY; or another
 * negative errno.
 */
static int check_has_only(int dir_fd, const char *const *names)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(dir_fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0)
		if (!is_among(entry->d_name, names))
			return -ENOTEMPTY;
	return r;
}

/*
 * Make the directory @path if it does not exist. It may have no entry other than @only. Return: its
 * descriptor, or negative errno.
 */
static int make_directory(int at_fd, const char *path, const char *const *only)
{
	int fd, r;

	if (mkdirat(at_fd, path, 0777) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR ? -EEXIST : -errno;
	r = check_has_only(fd, only);
	if (r == 0)
		return fd;
	(void)fd_close(fd);
	return r;
}

/* Readers take every file in an inner directory, so only the sink's files may be in it. */
static int open_directory(const char *path, const char *const *inner)
{
	static const char *const none[] = { NULL };
	_cleanup_(fd_closep) int outer = -1;
	int fd;

	if (!path)
		return -EISDIR;
	outer = make_directory(AT_FDCWD, path, inner);
	if (outer < 0)
		return outer;
	for (; *inner; inner++) {
		fd = make_directory(outer, *inner, none);
		if (fd < 0)
			return fd;
		(void)fd_close(fd);
	}
	fd = outer;
	outer = -1;
	return fd;
}

static int open_file(const char *path)
{
	const int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666)
			    : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	return fd < 0 ? -errno : fd;
}

int sink_target_open(const struct sink_ops *ops, const char *path)
{
	return ops->directories ? open_directory(path, ops->directories) : open_file(path);
}

/* --- one sink --------------------------------------------------------------------------------- */

struct sink {
	const struct sink_ops *ops; /* borrowed, as is @info */
	const struct ptd_info *info;
	void *state;
	struct ptd_calls *calls; /* the layer, of a kind that takes calls */
	struct callsieve sieve;  /* of a kind that shows each call */
	bool is_json;
	struct output output;
	int directory_fd;         /* -1: the sink writes one file */
	struct sink_worker own;   /* for sink_batch(), of a kind that expands */
	struct sink_bytes pieces; /* likewise */
};

/* Return: the value of @option, "" of a flag; NULL if it has another name than @name. */
static const char *value_of(const char *option, const char *name)
{
	const size_t size = strlen(name);

	if (strncmp(option, name, size) != 0 || (option[size] && option[size] != '='))
		return NULL;
	return option + size + (option[size] == '=');
}

const char *sink_option(const struct sink_config *config, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; config->options && config->options[i]; i++)
		value = value_of(config->options[i], name) ?: value;
	return value;
}

static int read_sieve(const struct sink_config *config, struct callsieve *ret_sieve)
{
	uint64_t max_depth = INT64_MAX;
	int r;

	r = option_duration(config, "min-duration", &ret_sieve->min_duration);
	if (r == 0)
		r = option_number(config, "max-depth", &max_depth);
	ret_sieve->max_depth = max_depth < INT64_MAX ? (int64_t)max_depth : INT64_MAX;
	return r;
}

static int open_state(struct sink *sink, struct sink_config *config, char **reterr_message)
{
	int r;

	config->n_rows = ROWS_SHOWN;
	sink->is_json = sink->ops->json && sink_option(config, "json");
	r = option_number(config, "rows", &config->n_rows);
	if (r == 0 && sink->ops->is_sieved)
		r = read_sieve(config, &sink->sieve);
	if (r == 0 && sink->ops->calls)
		r = ptd_calls_new(config->info, &sink->calls);
	if (r == 0 && sink->calls && config->decoder && !config->no_inlined_calls)
		ptd_calls_inline(sink->calls, config->decoder);
	config->calls = sink->calls;
	if (r == 0 && !(sink->state = calloc(1, sink->ops->state_size ?: 1)))
		r = -ENOMEM;
	if (r == 0 && sink->ops->open)
		r = sink->ops->open(sink->state, config, &sink->output);
	if (r == -EINVAL && config->options && config->options[0])
		return message_set(reterr_message, r,
				   "%s: an option has a value that it does not take",
				   sink->ops->name);
	return r;
}

int sink_new(const struct sink_ops *ops, const struct sink_config *given, struct sink **ret_sink,
	     char **reterr_message)
{
	_cleanup_(sink_freep) struct sink *sink = NULL;
	struct sink_config config = *given;
	_cleanup_(freep) char *unwanted = NULL;
	int r;

	if (!reterr_message)
		reterr_message = &unwanted;
	*reterr_message = NULL;
	if (config.info && config.info->logs_calls && !ops->calls)
		return message_set(
		    reterr_message, -EINVAL,
		    "%s shows instructions, and the input has none: it has calls, which "
		    "calls and functions show",
		    ops->name);
	sink = calloc(1, sizeof(*sink));
	if (!sink)
		return -ENOMEM;
	sink->ops = ops;
	sink->info = config.info;
	sink->output = output_none();
	sink->pieces = sink_bytes_none();
	sink->directory_fd = -1;
	r = !ops->directories && config.fd >= 0 ? output_init(&sink->output, &config) : 0;
	if (r == 0)
		r = open_state(sink, &config, reterr_message);
	if (r == 0 && ops->expand)
		r = sink_worker_init(&sink->own, sink);
	if (r < 0) {
		/* The file is still the caller's. */
		sink->output.fd = -1;
		return r;
	}
	if (ops->directories)
		sink->directory_fd = config.fd;
	*ret_sink = TAKE(sink);
	return 0;
}

bool sink_wants_sideband(const struct sink *sink)
{
	return sink->ops->sideband;
}

bool sink_wants_batches(const struct sink *sink)
{
	return sink->ops->expand || sink->ops->batch || sink->ops->calls;
}

int sink_take_sideband(struct sink *sink, const struct ptd_sideband *record)
{
	return sink->ops->sideband ? sink->ops->sideband(sink->state, record) : 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Return: whether the mark stands before @call in the stream. */
static bool is_before(const struct ptd_mark *mark, const struct ptd_call *call)
{
	const bool is_gap = call->kind == PTD_CALL_LEAVE && call->how == PTD_CALL_BY_GAP;

	return mark->run + is_gap <= call->run;
}

/* Give the kind calls, but for what it is not to show. */
static int give_some(struct sink *sink, const struct ptd_call_batch *calls)
{
	struct ptd_call_batch some = *calls;
	int r = 0;

	if (sink->ops->is_sieved)
		callsieve_count(&sink->sieve, calls);
	if (sink->ops->is_sieved && callsieve_is_on(&sink->sieve))
		r = callsieve_take(&sink->sieve, calls, &some);
	return r == 0 && some.n_calls > 0 ? sink->ops->calls(sink->state, &some) : r;
}

static int give_marks(struct sink *sink, const struct ptd_batch *batch, size_t *mark,
		      const struct ptd_call *until)
{
	int r = 0;

	for (; r == 0 && *mark < batch->n_marks; ++*mark) {
		if (until && !is_before(&batch->marks[*mark], until))
			break;
		r = sink->ops->mark(sink->state, batch->slice, &batch->marks[*mark]);
	}
	return r;
}

/*
 * Give the kind calls of @batch, and the marks before and between them. What lies together is given
 * at once: it takes less time to look at many calls than at each.
 */
static int give_between_marks(struct sink *sink, const struct ptd_batch *batch, size_t *mark,
			      const struct ptd_call_batch *found)
{
	struct ptd_call_batch some = *found;
	int r = 0;

	for (size_t i = 0; r == 0 && i < found->n_calls; i += some.n_calls) {
		size_t end = i + 1;

		some.calls = found->calls + i;
		r = give_marks(sink, batch, mark, some.calls);
		while (end < found->n_calls &&
		       (*mark == batch->n_marks ||
			!is_before(&batch->marks[*mark], &found->calls[end])))
			end++;
		some.n_calls = end - i;
		if (r == 0)
			r = give_some(sink, &some);
	}
	return r;
}

/* Give the kind the calls that there are for now; @batch is NULL at the end. */
static int give_calls(struct sink *sink, const struct ptd_batch *batch)
{
	const struct ptd_call_batch *found;
	size_t mark = 0;
	int r;

	while ((r = ptd_calls_next(sink->calls, &found)) == 0) {
		if (found->n_calls == 0)
			continue;
		r = found->batch && batch && sink->ops->mark
			? give_between_marks(sink, batch, &mark, found)
			: give_some(sink, found);
		if (r < 0)
			return r;
	}
	if (r != PTD_END)
		return r;
	return batch && sink->ops->mark ? give_marks(sink, batch, &mark, NULL) : 0;
}

static uint64_t end_of(const struct ptd_batch *batch, uint64_t t)
{
	if (batch->n_runs > 0 && batch->runs[batch->n_runs - 1].t > t)
		t = batch->runs[batch->n_runs - 1].t;
	if (batch->n_marks > 0 && batch->marks[batch->n_marks - 1].t > t)
		t = batch->marks[batch->n_marks - 1].t;
	return t;
}

static int take_batch(struct sink *sink, const struct ptd_batch *batch)
{
	int r = sink->ops->batch ? sink->ops->batch(sink->state, batch, end_of(batch, 0)) : 0;

	if (r == 0 && sink->ops->calls)
		r = ptd_calls_batch(sink->calls, batch);
	return r == 0 && sink->ops->calls ? give_calls(sink, batch) : r;
}

int sink_batch(struct sink *sink, const struct ptd_batch *batch)
{
	int r;

	/* Without write(), the bytes can go to the sink's output at once. */
	if (sink->ops->expand && !sink->ops->write)
		return sink->ops->expand(sink->state, sink->own.memory, batch, &sink->output);
	if (!sink->ops->expand)
		return take_batch(sink, batch);
	r = sink_worker_expand(&sink->own, batch, &sink->pieces);
	return r < 0 ? r : sink_write(sink, batch, &sink->pieces);
}

int sink_logged(struct sink *sink, const struct ptd_logged *logged)
{
	const struct ptd_batch *batch = &logged->batch;
	const uint64_t t = logged->n_calls > 0 ? logged->calls[logged->n_calls - 1].t : 0;
	int r = sink->ops->batch ? sink->ops->batch(sink->state, batch, end_of(batch, t)) : 0;

	if (r == 0)
		r = ptd_calls_logged(sink->calls, logged);
	return r == 0 ? give_calls(sink, batch) : r;
}

static int end_calls(struct sink *sink)
{
	int r = sink->ops->batch ? sink->ops->batch(sink->state, NULL, 0) : 0;

	if (r == 0)
		r = ptd_calls_finish(sink->calls);
	return r == 0 ? give_calls(sink, NULL) : r;
}

/* --- the end ---------------------------------------------------------------------------------- */

static int put_json(struct sink *sink, const struct ptd_stats *stats)
{
	struct json json = json_begin(&sink->output);
	int r;

	json_object(&json, NULL);
	json_text(&json, "format", sink->ops->name);
	json_clock(&json, sink->info->clock);
	r = sink->ops->json(sink->state, stats, &json);
	if (r == 0)
		json_close(&json);
	return r;
}

static int put_text(struct sink *sink, const struct ptd_stats *stats)
{
	output_fit(&sink->output);
	return sink->ops->text(sink->state, stats, &sink->output);
}

int sink_finish(struct sink *sink, const struct ptd_stats *stats)
{
	int r = sink->calls ? end_calls(sink) : 0, q;

	if (r == 0 && sink->ops->finish)
		r = sink->ops->finish(sink->state, stats, &sink->output);
	if (r == 0 && sink->ops->text)
		r = sink->is_json ? put_json(sink, stats) : put_text(sink, stats);
	q = sink->output.fd >= 0 ? output_finish(&sink->output) : sink->output.error;
	return r < 0 ? r : q;
}

const char *sink_omission(struct sink *sink)
{
	return sink->ops->omission ? sink->ops->omission(sink->state) : NULL;
}

bool sink_is_empty(const struct sink *sink)
{
	return sink->ops->is_empty && sink->ops->is_empty(sink->state);
}

uint64_t sink_n_left_out(const struct sink *sink)
{
	return sink->sieve.n_left_out;
}

uint64_t sink_duration_of(const struct sink *sink, uint64_t n)
{
	return sink->ops->is_sieved && sink->info->clock == PTD_CLOCK_NS
		   ? callsieve_duration_of(&sink->sieve, n)
		   : UINT64_MAX;
}

struct sink *sink_free(struct sink *sink)
{
	if (!sink)
		return NULL;
	sink_worker_deinit(&sink->own);
	sink_bytes_deinit(&sink->pieces);
	if (sink->state && sink->ops->close)
		sink->ops->close(sink->state);
	free(sink->state);
	ptd_calls_free(sink->calls);
	callsieve_deinit(&sink->sieve);
	output_deinit(&sink->output);
	(void)fd_close(sink->directory_fd);
	free(sink);
	return NULL;
}

/* --- workers ---------------------------------------------------------------------------------- */

bool sink_expands(const struct sink *sink)
{
	return sink->ops->expand;
}

int sink_worker_init(struct sink_worker *worker, const struct sink *sink)
{
	void *memory = NULL;
	int r;

	r = sink->ops->remember ? sink->ops->remember(sink->state, &memory) : 0;
	if (r == 0)
		*worker = (struct sink_worker){ .sink = sink, .memory = memory };
	return r;
}

void sink_worker_deinit(struct sink_worker *worker)
{
	if (worker->memory)
		worker->sink->ops->forget(worker->memory);
	*worker = (struct sink_worker){};
}

void sink_bytes_deinit(struct sink_bytes *bytes)
{
	output_deinit(&bytes->output);
	vec_deinit(&bytes->ends);
}

int sink_worker_expand(struct sink_worker *worker, const struct ptd_batch *batch,
		       struct sink_bytes *bytes)
{
	const struct sink *sink = worker->sink;
	int r;

	r = sink->ops->expand(sink->state, worker->memory, batch, &bytes->output);
	if (r == 0)
		r = bytes->output.error;
	return r < 0 ? r : vec_push(&bytes->ends, bytes->output.n_used);
}

int sink_write(struct sink *sink, const struct ptd_batch *batch, struct sink_bytes *bytes)
{
	const uint8_t *piece;
	size_t start, end;

	if (!bytes)
		return take_batch(sink, batch);
	assert(bytes->n_written < bytes->ends.n);
	start = bytes->n_written ? bytes->ends.items[bytes->n_written - 1] : 0;
	end = bytes->ends.items[bytes->n_written++];
	piece = bytes->output.buffer + start;
	/* They stay until the next expansion. */
	if (bytes->n_written == bytes->ends.n)
		bytes->n_written = bytes->ends.n = bytes->output.n_used = 0;
	if (sink->ops->write)
		return sink->ops->write(sink->state, batch, piece, end - start);
	return end > start ? output_write(&sink->output, piece, end - start) : 0;
}

/* --- the values of options -------------------------------------------------------------------- */

/* Return: 0 and the end of the number in @ret_end; or -EINVAL. */
static int parse(const char *text, uint64_t *ret_value, const char **ret_end)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || text[0] < '0' || text[0] > '9')
		return -EINVAL;
	*ret_value = value;
	*ret_end = end;
	return 0;
}

int option_number(const struct sink_config *config, const char *name, uint64_t *ret_value)
{
	const char *text = sink_option(config, name), *end;
	uint64_t value;

	if (!text)
		return 0;
	if (parse(text, &value, &end) < 0 || *end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int option_duration(const struct sink_config *config, const char *name, uint64_t *ret_value)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }
	};
	const size_t n_units = config->info->clock == PTD_CLOCK_NS ? ARRAY_LEN(units) : 1;
	const char *text = sink_option(config, name), *end;
	uint64_t value;

	if (!text)
		return 0;
	if (parse(text, &value, &end) < 0 || config->info->clock == PTD_CLOCK_NONE)
		return -EINVAL;
	for (size_t i = 0; i < n_units; i++)
		if (strcmp(end, units[i].name) == 0)
			return __builtin_mul_overflow(value, units[i].ns, ret_value) ? -EINVAL : 0;
	return -EINVAL;
}
