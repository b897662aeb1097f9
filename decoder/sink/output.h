/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Output
 *
 * Where a sink puts its bytes: a file, behind one big buffer that is used again and again; or
 * memory, which grows. The first error ends it: it is returned once more by every later call, and
 * nothing is written any more. A reader that goes away is -EPIPE, if the program ignores SIGPIPE.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/sink.h"

#define OUTPUT_SIZE (1u << 20) /* of a file's buffer: the most that fits in at once */

struct ptd_output {
	uint8_t *buffer;
	size_t n_used;
	size_t n_capacity;
	bool grows;     /* it is memory */
	int fd;         /* of the file */
	uint64_t *room; /* how many bytes may be written to it; or NULL */
	int error;      /* 0, or negative errno */
};

/* Memory, with nothing in it. */
static inline struct ptd_output output_memory(void)
{
	return (struct ptd_output){ .grows = true, .fd = -1 };
}

/* No file: whatever is written fails with -EBADF. */
static inline struct ptd_output output_none(void)
{
	return (struct ptd_output){ .fd = -1 };
}

/* Write to the file of @config, which is taken on success. Return: 0, or negative errno. */
_must_check_ int output_init(struct ptd_output *output, const struct ptd_sink_config *config);

/* Free it, and close the file; what is still in the buffer is lost. */
void output_deinit(struct ptd_output *output);

/* Write out what is in the buffer of a file. Return: 0, or negative errno. */
_must_check_ int output_flush(struct ptd_output *output);

/* Flush, and close the file. Return: 0, or negative errno. */
_must_check_ int output_finish(struct ptd_output *output);

/* For output_reserve(), if the buffer has no room for @size bytes. Return: 0, or negative errno. */
_must_check_ int output_make_room(struct ptd_output *output, size_t size);

/*
 * Make room for @size bytes (at most OUTPUT_SIZE) at output->buffer + output->n_used; the caller
 * writes there and adds to n_used.
 *
 * Return: 0, or negative errno.
 */
_must_check_ static inline int output_reserve(struct ptd_output *output, size_t size)
{
	return output->n_capacity - output->n_used >= size ? output->error
							   : output_make_room(output, size);
}

/*
 * Copy at most @n_max bytes of a foreign name so that it cannot steer a terminal or break a line.
 *
 * Return: how many; no NUL is added.
 */
size_t output_printable(char *ret_text, const char *name, size_t n_max);
