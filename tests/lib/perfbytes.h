/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf bytes
 *
 * For tests of what becomes of the bytes of a perf.data file: puts the bytes into a file without a
 * name, and gets those of a span out of the files again.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/file/perfdata.h"

/* Return: the file, open; or negative errno. */
_must_check_ static inline int perfbytes_open(const void *bytes, size_t size)
{
	const int fd = memfd_create("perf.data", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	if (size == 0 || write(fd, bytes, size) == (ssize_t)size)
		return fd;
	r = -errno;
	(void)fd_close(fd);
	return r < 0 ? r : -EIO;
}

/* perfdata_parse() of a file that has these bytes. It stays open as long as the trace. */
_must_check_ static inline int perfbytes_parse(const void *bytes, size_t size, const char *name,
					       struct trace **ret_trace, char **reterr_message)
{
	struct trace *trace;
	int fd, r;

	fd = perfbytes_open(bytes, size);
	if (fd < 0)
		return message_set(reterr_message, fd, "no memory file");
	r = perfdata_parse(&(struct perfstream_file){ .fd = fd, .size = size, .name = name }, 1,
			   NULL, &trace, reterr_message);
	if (r == 0 && vec_push(&trace->fds, fd) < 0) {
		trace_free(trace);
		r = message_set(reterr_message, -ENOMEM, "out of memory");
	}
	if (r < 0)
		(void)fd_close(fd);
	else
		*ret_trace = trace;
	return r;
}

/* Return: whether @span has the @n bytes at @at. */
static inline bool perfbytes_has(const struct trace_span *span, uint64_t at, const void *bytes,
				 size_t n)
{
	_cleanup_(freep) uint8_t *got = malloc(n + 1);

	return got && at + n <= span->pt.size && fileparts_read(&span->pt, at, got, n) == 0 &&
	       memcmp(got, bytes, n) == 0;
}

/* Return: the bytes of @span, which the caller frees; NULL if they cannot be read. */
static inline uint8_t *perfbytes_span(const struct trace_span *span)
{
	uint8_t *bytes = malloc((size_t)span->pt.size + 1);

	if (bytes && fileparts_read(&span->pt, 0, bytes, (size_t)span->pt.size) < 0) {
		free(bytes);
		return NULL;
	}
	return bytes;
}
