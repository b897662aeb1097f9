/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Output
 *
 * A file, or standard output, behind one big buffer that is used again and again. The first error
 * ends it: it is returned once more by every later call, and nothing is written any more. A reader
 * that goes away is -EPIPE, if the program ignores SIGPIPE.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/sink.h"

#define OUTPUT_SIZE (1u << 20) /* of the buffer: the most that fits in at once */

struct output {
	uint8_t *buffer;
	size_t n_used;
	int fd;
	uint64_t *room; /* of the target; or NULL */
	int error;      /* 0, or negative errno */
};

/* Write to @target, whose descriptor is taken on success. Return: 0, or negative errno. */
_must_check_ int output_init(struct output *output, const struct ptd_sink_target *target);

/* Close it; what is still in the buffer is lost. It may be all zero. */
void output_deinit(struct output *output);

/* Write out what is in the buffer. Return: 0, or negative errno. */
_must_check_ int output_flush(struct output *output);

/* Flush, and close the file. Return: 0, or negative errno. */
_must_check_ int output_finish(struct output *output);

/*
 * Make room for @size bytes (at most OUTPUT_SIZE) at output->buffer + output->n_used; the caller
 * writes there and adds to n_used.
 *
 * Return: 0, or negative errno.
 */
_must_check_ static inline int output_reserve(struct output *output, size_t size)
{
	return OUTPUT_SIZE - output->n_used >= size ? output->error : output_flush(output);
}

/* Add @size bytes, however many. Return: 0, or negative errno. */
_must_check_ int output_write(struct output *output, const void *bytes, size_t size);

/*
 * Add formatted text of less than 4096 bytes; what is longer is cut. What fails is told by the next
 * call that returns something.
 */
_printf_(2, 3) void output_printf(struct output *output, const char *format, ...);

/*
 * Copy at most @n_max bytes of a foreign name so that it cannot steer a terminal or break a line.
 *
 * Return: how many; no NUL is added.
 */
size_t output_printable(char *ret_text, const char *name, size_t n_max);
