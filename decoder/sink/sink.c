/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The library's kinds of sinks, the files and directories that sinks write to, and a sink of any
 * kind. A new kind of sink is a file of its own and one line here.
 */

#include "ptd/sink.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/worker.h"
#include "util/dirs.h"
#include "util/message.h"

DEFINE_CLEANUP(struct ptd_sink *, ptd_sink_free);

static const struct ptd_sink_ops *const kinds[] = {
	&sink_text,      &sink_summary,    &sink_calls,     &sink_functions, &sink_latency,
	&sink_stacks,    &sink_crash,      &sink_branches,  &sink_autofdo,   &sink_bolt,
	&sink_collapsed, &sink_pprof,      &sink_chrome,    &sink_callgrind, &sink_fxt,
	&sink_html,      &sink_drmemtrace, &sink_addresses, &sink_sideband,  &sink_xray,
	&sink_ovni,
};

const struct ptd_sink_ops *ptd_sink_at(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i] : NULL;
}

const struct ptd_sink_ops *ptd_sink_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	return NULL;
}

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

int ptd_sink_target_open(const struct ptd_sink_ops *ops, const char *path)
{
	return ops->directories ? open_directory(path, ops->directories) : open_file(path);
}

/* --- one sink --------------------------------------------------------------------------------- */

struct ptd_sink {
	struct ptd_sink_ops ops; /* operations that an older program does not have are NULL */
	void *state;
	struct ptd_output output;
	int directory_fd;         /* -1: the sink writes one file */
	struct sink_worker own;   /* for ptd_sink_batch(), of a kind that expands */
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

const char *ptd_sink_option(const struct ptd_sink_config *config, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; config->options && config->options[i]; i++)
		value = value_of(config->options[i], name) ?: value;
	return value;
}

bool ptd_sink_takes_option(const struct ptd_sink_ops *ops, const char *option)
{
	for (const struct ptd_sink_option *o = ops->options; o && o->name; o++)
		if (value_of(option, o->name))
			return !strchr(option, '=') == !o->value;
	return false;
}

/*
 * Check that the kind takes all options, and has those that it needs. Return: 0; or -EINVAL and
 * @reterr_message.
 */
static int check_options(const struct ptd_sink_ops *ops, const struct ptd_sink_config *config,
			 char **reterr_message)
{
	for (size_t i = 0; config->options && config->options[i]; i++)
		if (!ptd_sink_takes_option(ops, config->options[i]))
			return message_set(reterr_message, -EINVAL, "%s has no option \"%s\"",
					   ops->name, config->options[i]);
	for (const struct ptd_sink_option *o = ops->options; o && o->name; o++)
		if (o->is_required && !ptd_sink_option(config, o->name))
			return message_set(reterr_message, -EINVAL, "%s needs the option \"%s=\"",
					   ops->name, o->name);
	return 0;
}

static int open_state(struct ptd_sink *sink, const struct ptd_sink_config *config,
		      char **reterr_message)
{
	const int r = sink->ops.open(config, &sink->output, &sink->state);

	if (r == -EINVAL && config->options && config->options[0])
		return message_set(reterr_message, r,
				   "%s: an option has a value that it does not "
				   "take",
				   sink->ops.name);
	return r;
}

int ptd_sink_new(const struct ptd_sink_ops *ops, const struct ptd_sink_config *given,
		 struct ptd_sink **ret_sink, char **reterr_message)
{
	_cleanup_(ptd_sink_freep) struct ptd_sink *sink = NULL;
	struct ptd_sink_config config = { .fd = -1 };
	_cleanup_(freep) char *unwanted = NULL;
	int r;

	if (!reterr_message)
		reterr_message = &unwanted;
	*reterr_message = NULL;
	if (ops->size > sizeof(sink->ops) || given->size > sizeof(config))
		return message_set(reterr_message, -EINVAL,
				   "the caller is newer than this library");
	sink = calloc(1, sizeof(*sink));
	if (!sink)
		return -ENOMEM;
	memcpy(&sink->ops, ops, ops->size);
	memcpy(&config, given, given->size);
	sink->output = output_none();
	sink->pieces = sink_bytes_none();
	sink->directory_fd = -1;
	if (!sink->ops.open || !sink->ops.free)
		return message_set(reterr_message, -EINVAL,
				   "a kind of sink needs open() and free()");

	r = check_options(&sink->ops, &config, reterr_message);
	if (r == 0 && config.info && config.info->logs_calls && !sink->ops.logged)
		r = message_set(
		    reterr_message, -EINVAL,
		    "%s shows instructions, and the input has none: it has calls, which "
		    "calls and functions show",
		    sink->ops.name);
	if (r == 0 && !sink->ops.directories && config.fd >= 0)
		r = output_init(&sink->output, &config);
	if (r == 0)
		r = open_state(sink, &config, reterr_message);
	if (r == 0 && sink->ops.expand)
		r = sink_worker_init(&sink->own, sink);
	if (r < 0) {
		/* The file is still the caller's. */
		sink->output.fd = -1;
		return r;
	}
	if (sink->ops.directories)
		sink->directory_fd = config.fd;
	*ret_sink = TAKE(sink);
	return 0;
}

int ptd_sink_open(const struct ptd_sink_ops *ops, const char *path, const struct ptd_info *info,
		  const char *const *options, struct ptd_sink **ret_sink)
{
	struct ptd_sink_config config = {
		.size = sizeof(config),
		.info = info,
		.fd = ptd_sink_target_open(ops, path),
		.is_emptied = path,
		.options = options,
	};
	int r;

	if (config.fd < 0)
		return config.fd;
	r = ptd_sink_new(ops, &config, ret_sink, NULL);
	if (r < 0)
		(void)fd_close(config.fd);
	return r;
}

bool ptd_sink_wants_sideband(const struct ptd_sink *sink)
{
	return sink->ops.sideband;
}

bool ptd_sink_wants_batches(const struct ptd_sink *sink)
{
	return sink->ops.expand || sink->ops.write;
}

int ptd_sink_sideband(struct ptd_sink *sink, const struct ptd_sideband *record)
{
	return sink->ops.sideband ? sink->ops.sideband(sink->state, record, &sink->output) : 0;
}

int ptd_sink_batch(struct ptd_sink *sink, const struct ptd_batch *batch)
{
	int r;

	/* Without write(), the bytes can go to the sink's output at once. */
	if (sink->ops.expand && !sink->ops.write)
		return sink->ops.expand(sink->state, sink->own.memory, batch, &sink->output);
	if (!sink->ops.expand)
		return sink_write(sink, batch, NULL);
	r = sink_worker_expand(&sink->own, batch, &sink->pieces);
	return r < 0 ? r : sink_write(sink, batch, &sink->pieces);
}

int ptd_sink_logged(struct ptd_sink *sink, const struct ptd_logged *logged)
{
	return sink->ops.logged(sink->state, logged);
}

int ptd_sink_finish(struct ptd_sink *sink, const struct ptd_stats *stats)
{
	int r = 0, q;

	if (sink->ops.finish)
		r = sink->ops.finish(sink->state, stats, &sink->output);
	q = sink->output.fd >= 0 ? output_finish(&sink->output) : sink->output.error;
	return r < 0 ? r : q;
}

const char *ptd_sink_omission(struct ptd_sink *sink)
{
	return sink->ops.omission ? sink->ops.omission(sink->state) : NULL;
}

struct ptd_sink *ptd_sink_free(struct ptd_sink *sink)
{
	if (!sink)
		return NULL;
	sink_worker_deinit(&sink->own);
	sink_bytes_deinit(&sink->pieces);
	if (sink->state)
		sink->ops.free(sink->state);
	output_deinit(&sink->output);
	(void)fd_close(sink->directory_fd);
	free(sink);
	return NULL;
}

/* --- workers ---------------------------------------------------------------------------------- */

bool sink_expands(const struct ptd_sink *sink)
{
	return sink->ops.expand;
}

int sink_worker_init(struct sink_worker *worker, const struct ptd_sink *sink)
{
	void *memory = NULL;
	int r;

	r = sink->ops.remember ? sink->ops.remember(sink->state, &memory) : 0;
	if (r == 0)
		*worker = (struct sink_worker){ .sink = sink, .memory = memory };
	return r;
}

void sink_worker_deinit(struct sink_worker *worker)
{
	if (worker->memory)
		worker->sink->ops.forget(worker->memory);
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
	const struct ptd_sink *sink = worker->sink;
	int r;

	r = sink->ops.expand(sink->state, worker->memory, batch, &bytes->output);
	if (r == 0)
		r = bytes->output.error;
	return r < 0 ? r : vec_push(&bytes->ends, bytes->output.n_used);
}

int sink_write(struct ptd_sink *sink, const struct ptd_batch *batch, struct sink_bytes *bytes)
{
	const uint8_t *piece = NULL;
	size_t start = 0, end = 0;

	if (bytes) {
		assert(bytes->n_written < bytes->ends.n);
		start = bytes->n_written ? bytes->ends.items[bytes->n_written - 1] : 0;
		end = bytes->ends.items[bytes->n_written++];
		piece = bytes->output.buffer + start;
		/* They stay until the next expansion. */
		if (bytes->n_written == bytes->ends.n)
			bytes->n_written = bytes->ends.n = bytes->output.n_used = 0;
	}
	if (sink->ops.write)
		return sink->ops.write(sink->state, batch, piece, end - start, &sink->output);
	return end > start ? ptd_output_write(&sink->output, piece, end - start) : 0;
}
