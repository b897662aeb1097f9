/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/file/manifest.h"
#include "decoder/file/perfdata.h"
#include "decoder/util/spill.h"
#include "ptd/snapshot.h"
#include "util/message.h"
#include "util/regular.h"

/* Of the data files of a directory. */
#define FILES_MAX 4096

/* A file that is read where it is; or what came out of a pipe, in a temporary file. */
struct input {
	int fd;
	bool is_owned; /* else it stays open */
	uint64_t offset, size;
};

static void input_close(struct input *input)
{
	if (input->is_owned)
		(void)fd_close(input->fd);
	*input = (struct input){ .fd = -1 };
}

/* What comes out of a pipe is read to its end, and then like a file. */
static int read_pipe(int fd, struct reading *reading, struct input *ret_input)
{
	_cleanup_(spill_deinit) struct spill spill = { .spills = reading_spills(reading) };
	struct spillfile file;
	int r;

	r = spill_copy(&spill, fd);
	if (r < 0)
		return r;
	file = spill_finish(&spill);
	*ret_input = (struct input){
		.fd = file.fd, .is_owned = file.is_owned, .offset = file.offset, .size = file.size
	};
	return 0;
}

/* @path is what the file can be found by later, or NULL. */
static int note_file(int fd, const char *path, struct reading *reading, struct input *ret_input)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = path ? reading_note(reading, path, &st) : 0;
	if (r < 0)
		return r;
	*ret_input = (struct input){ .fd = fd, .size = (uint64_t)st.st_size };
	return 0;
}

static int open_stdin(struct reading *reading, struct input *ret_input)
{
	struct stat st;

	if (isatty(STDIN_FILENO))
		return -ENOTTY;
	if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		return note_file(STDIN_FILENO, NULL, reading, ret_input);
	return read_pipe(STDIN_FILENO, reading, ret_input);
}

/* Open the regular file @name, seen from @dir_fd. */
static int open_file(int dir_fd, const char *name, const char *path, struct reading *reading,
		     struct input *ret_input)
{
	_cleanup_(fd_closep) int fd = regular_open(dir_fd, name, 0);
	int r;

	if (fd < 0)
		return fd;
	r = note_file(fd, path, reading, ret_input);
	if (r < 0)
		return r;
	ret_input->is_owned = true;
	fd = -1;
	return 0;
}

/* @path is the same as @name, seen from the working directory. */
static int open_path(int dir_fd, const char *name, const char *path, struct reading *reading,
		     struct input *ret_input)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat st;

	/* Only a FIFO that the user named: other devices, and what a directory holds,
	 * might never end. */
	if (fstatat(dir_fd, name, &st, 0) < 0)
		return -errno;
	if (!S_ISFIFO(st.st_mode) || dir_fd != AT_FDCWD)
		return open_file(dir_fd, name, path, reading, ret_input);
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : read_pipe(fd, reading, ret_input);
}

/* The files of a trace. */
struct data {
	struct reading *reading;       /* borrowed; or NULL */
	struct perfstream_file *files; /* whose names are owned */
	struct input *inputs;
	size_t n;
};

static void data_deinit(struct data *data)
{
	for (size_t i = 0; i < data->n; i++) {
		input_close(&data->inputs[i]);
		free((void *)(uintptr_t)data->files[i].name);
	}
	free(data->files);
	free(data->inputs);
}

/* Add the file @name, seen from @dir_fd; messages call it @path, which is taken over. */
static int add_file(struct data *data, int dir_fd, const char *name, char *path,
		    char **reterr_message)
{
	struct input *input = &data->inputs[data->n];
	int r;

	if (!path)
		return message_set(reterr_message, -ENOMEM, "%s: out of memory", name);
	data->files[data->n++].name = path;
	*input = (struct input){ .fd = -1 };
	r = name ? open_path(dir_fd, name, path, data->reading, input)
		 : open_stdin(data->reading, input);
	if (r == -EINVAL)
		return message_set(reterr_message, r, "%s: not a regular file", path);
	if (r < 0)
		return message_set(reterr_message, r, "%s: %s", path,
				   r == -ENOTTY ? "is a terminal" : strerror(-r));
	data->files[data->n - 1].fd = input->fd;
	data->files[data->n - 1].offset = input->offset;
	data->files[data->n - 1].size = input->size;
	progress_expect(reading_progress(data->reading), input->size);
	return 0;
}

static int make_room(struct data *data, size_t n)
{
	data->files = calloc(n, sizeof(*data->files));
	data->inputs = calloc(n, sizeof(*data->inputs));
	return data->files && data->inputs ? 0 : -ENOMEM;
}

/* Let @trace close the descriptor of @input. Return: 0 or -ENOMEM. */
static int hand_over(struct trace *trace, struct input *input)
{
	if (!input->is_owned)
		return 0;
	if (vec_push(&trace->fds, input->fd) < 0)
		return -ENOMEM;
	input->is_owned = false;
	return 0;
}

static int parse(struct data *data, struct trace **ret_trace, char **reterr_message)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;
	int r;

	r = perfdata_parse(data->files, data->n, data->reading, &trace, reterr_message);
	if (r < 0)
		return r;
	for (size_t i = 0; i < data->n; i++)
		if (hand_over(trace, &data->inputs[i]) < 0)
			return message_set(reterr_message, -ENOMEM, "%s: out of memory",
					   data->files[i].name);
	*ret_trace = TAKE(trace);
	return 0;
}

/* @name: NULL is standard input. */
static int read_file(const char *name, const char *path, struct reading *reading,
		     struct trace **ret_trace, char **reterr_message)
{
	_cleanup_(data_deinit) struct data data = { .reading = reading };
	int r;

	r = make_room(&data, 1);
	if (r < 0)
		return message_set(reterr_message, r, "%s: out of memory", path);
	r = add_file(&data, AT_FDCWD, name, strdup(path), reterr_message);
	return r < 0 ? r : parse(&data, ret_trace, reterr_message);
}

/* data.0, data.1, … as many as there are: perf numbers them without a hole. */
static int add_others(struct data *data, int dir_fd, const char *dir, char **reterr_message)
{
	for (size_t i = 0; data->n < FILES_MAX; i++) {
		char name[32];
		int r;

		(void)snprintf(name, sizeof(name), PTD_SNAPSHOT_DATA ".%zu", i);
		if (faccessat(dir_fd, name, F_OK, 0) < 0)
			return 0;
		r = add_file(data, dir_fd, name, message_text("%s/%s", dir, name), reterr_message);
		if (r < 0)
			return r;
	}
	return message_set(reterr_message, -EFBIG, "%s: has more than %d data files", dir,
			   FILES_MAX - 1);
}

static int read_files(int dir_fd, const char *dir, struct reading *reading,
		      struct trace **ret_trace, char **reterr_message)
{
	_cleanup_(data_deinit) struct data data = { .reading = reading };
	int r;

	r = make_room(&data, FILES_MAX);
	if (r < 0)
		return message_set(reterr_message, r, "%s: out of memory", dir);
	r = add_file(&data, dir_fd, PTD_SNAPSHOT_DATA, message_text("%s/" PTD_SNAPSHOT_DATA, dir),
		     reterr_message);
	if (r == 0)
		data.files[0].pieces = reading ? reading->pieces : NULL;
	if (r == 0)
		r = add_others(&data, dir_fd, dir, reterr_message);
	return r < 0 ? r : parse(&data, ret_trace, reterr_message);
}

static int read_directory(int dir_fd, const char *dir, bool force, struct reading *reading,
			  struct trace **ret_trace, char **reterr_message)
{
	_cleanup_(manifest_deinit) struct manifest manifest = {};
	struct trace_facts *facts;
	int r;

	r = manifest_read(dir_fd, dir, force, reading, &manifest, reterr_message);
	if (r < 0)
		return r;

	r = read_files(dir_fd, dir, reading, ret_trace, reterr_message);
	if (r < 0)
		return r;
	if (manifest.complaint) {
		r = vec_push(&(*ret_trace)->bytes, (uint8_t *)manifest.complaint);
		if (r < 0)
			return r;
		(*ret_trace)->complaints[TRACE_COMPLAINT_SUMS] = TAKE(manifest.complaint);
	}
	facts = &(*ret_trace)->facts;
	facts->realtime_offset_ns = manifest.realtime_offset_ns;
	facts->switches_apart = manifest.is_there;
	facts->kcore_is_last = manifest.is_there;
	facts->dropped_until = manifest.dropped_until_ns;
	facts->has_unread = manifest.has_unread;
	facts->monotonic_offset_ns = manifest.monotonic_offset_ns;
	facts->snapshot_taken = manifest.taken_ns;
	facts->bytes_overwritten = manifest.bytes_overwritten;
	facts->complete_since = manifest.complete_since_ns;
	facts->complete_until = manifest.complete_until_ns;
	facts->has_scope = manifest.has_scope;
	facts->scope = manifest.scope;
	manifest.scope = (struct map){};
	for (size_t i = 0; i < (*ret_trace)->n_queues; i++)
		(*ret_trace)->queues[i].sideband_since =
		    manifest_since(&manifest, (*ret_trace)->queues[i].cpu);
	return 0;
}

int input_open(const char *path, bool force, struct reading *reading, struct trace **ret_trace,
	       char **reterr_message)
{
	_cleanup_(fd_closep) int dir_fd = -1;

	if (strcmp(path, "-") == 0)
		return read_file(NULL, "standard input", reading, ret_trace, reterr_message);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0)
		return read_directory(dir_fd, path, force, reading, ret_trace, reterr_message);
	if (errno != ENOTDIR)
		return message_set(reterr_message, -errno, "%s: %s", path, strerror(errno));
	return read_file(path, path, reading, ret_trace, reterr_message);
}

/* Make a trace of @input. The packets alone say whether they have times, and which events. */
static int bare_trace(struct trace *trace, struct input *input, struct reading *reading)
{
	trace->spills = reading_spills(reading);
	table_init(&trace->record_table, sizeof(struct trace_record), trace->spills);
	trace->facts = (struct trace_facts){ .is_bare = true, .has_tsc = true, .has_events = true };
	trace->queues = calloc(1, sizeof(*trace->queues));
	if (!trace->queues)
		return -ENOMEM;
	trace->n_queues = 1;
	trace->queues[0] = (struct trace_queue){ .cpu = 0, .tid = TRACE_NONE };
	trace->queues[0].spans = calloc(1, sizeof(*trace->queues[0].spans));
	trace->parts = calloc(1, sizeof(*trace->parts));
	if (!trace->queues[0].spans || !trace->parts)
		return -ENOMEM;
	trace->parts[0] = (struct filepart){ .fd = input->fd };
	trace->queues[0].n_spans = 1;
	trace->queues[0].spans[0] =
	    (struct trace_span){ .pt = { .size = input->size, .parts = trace->parts, .n = 1 } };
	return hand_over(trace, input);
}

int input_open_bare(const char *path, struct reading *reading, struct trace **ret_trace,
		    char **reterr_message)
{
	_cleanup_(trace_freep) struct trace *trace = calloc(1, sizeof(*trace));
	_cleanup_(input_close) struct input input = { .fd = -1 };
	int r;

	if (!trace)
		return message_set(reterr_message, -ENOMEM, "%s: out of memory", path);
	r = open_file(AT_FDCWD, path, path, reading, &input);
	if (r < 0)
		return message_set(reterr_message, r, "%s: cannot read: %s", path,
				   r == -EINVAL ? "is no regular file" : strerror(-r));
	r = bare_trace(trace, &input, reading);
	if (r < 0)
		return message_set(reterr_message, r, "%s: out of memory", path);
	*ret_trace = TAKE(trace);
	return 0;
}
