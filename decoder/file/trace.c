/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/manifest.h"
#include "decoder/file/perfdata.h"
#include "decoder/util/message.h"
#include "ptd/snapshot.h"

struct trace *trace_free(struct trace *trace)
{
	if (!trace)
		return NULL;

	for (size_t i = 0; i < trace->n_queues; i++) {
		for (size_t j = 0; j < trace->queues[i].n_spans; j++)
			free(trace->queues[i].spans[j].joined);
		free(trace->queues[i].spans);
	}
	free(trace->queues);
	free(trace->records);
	mapfile_deinit(&trace->file);
	free(trace);
	return NULL;
}

/* Read the perf.data at @name, seen from @dir_fd; messages call it @path. */
static int read_file(int dir_fd, const char *name, const char *path, struct trace **ret_trace,
		     char **reterr_message)
{
	struct mapfile file = {};
	int r;

	r = mapfile_init_writable(&file, dir_fd, name);
	if (r == -EINVAL)
		return message_set(reterr_message, r, "%s: not a regular file", path);
	if (r < 0)
		return message_set(reterr_message, r, "%s: %s", path, strerror(-r));

	r = perfdata_parse(file.bytes, file.size, path, ret_trace, reterr_message);
	if (r < 0) {
		mapfile_deinit(&file);
		return r;
	}
	(*ret_trace)->file = file;
	return 0;
}

static int read_directory(int dir_fd, const char *dir, bool force, struct trace **ret_trace,
			  char **reterr_message)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(manifest_deinit) struct manifest manifest = {};
	int r;

	r = manifest_read(dir_fd, dir, force, &manifest, reterr_message);
	if (r < 0)
		return r;

	if (asprintf(&path, "%s/%s", dir, PTD_SNAPSHOT_DATA) < 0) {
		path = NULL;
		return message_set(reterr_message, -ENOMEM, "%s: out of memory", dir);
	}
	r = read_file(dir_fd, PTD_SNAPSHOT_DATA, path, ret_trace, reterr_message);
	if (r < 0)
		return r;
	(*ret_trace)->facts.realtime_offset_ns = manifest.realtime_offset_ns;
	(*ret_trace)->facts.monotonic_offset_ns = manifest.monotonic_offset_ns;
	for (size_t i = 0; i < (*ret_trace)->n_queues; i++)
		(*ret_trace)->queues[i].sideband_since =
		    manifest_since(&manifest, (*ret_trace)->queues[i].cpu);
	return 0;
}

int trace_open(const char *path, bool force, struct trace **ret_trace, char **reterr_message)
{
	_cleanup_(fd_closep) int dir_fd = -1;

	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0)
		return read_directory(dir_fd, path, force, ret_trace, reterr_message);
	if (errno != ENOTDIR)
		return message_set(reterr_message, -errno, "%s: %s", path, strerror(errno));
	return read_file(AT_FDCWD, path, path, ret_trace, reterr_message);
}
