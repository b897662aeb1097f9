/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Output
 *
 * Where a sink puts its bytes: a file, with one big buffer before it that is used again and again;
 * or memory, which grows. After the first error nothing more is written, and every later call
 * returns the same error. If the reader of a pipe goes away, that error is -EPIPE, provided that
 * the program ignores SIGPIPE.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/sink.h"

/*
 * Bytes of a file's buffer: the most that can be reserved at once. It is so small that the kernel
 * finds the bytes in the CPU's second cache.
 */
#define OUTPUT_SIZE (1u << 19)

struct output {
	uint8_t *buffer;
	size_t n_used;
	size_t n_capacity;
	bool grows;     /* the output is memory */
	int fd;         /* of the file; owned; -1 if there is none */
	uint64_t *room; /* bytes that may still be written to the file; NULL: no limit; borrowed */
	size_t columns; /* at which lines are cut; 0: they are not */
	size_t column;  /* at which the next character stands, if lines are cut */
	int error;      /* the first one: 0, or negative errno */
};

/* Return: an output to memory, which holds nothing yet. */
static inline struct output output_memory(void)
{
	return (struct output){ .grows = true, .fd = -1 };
}

/* Return: an output without a file: writing to it fails with -EBADF. */
static inline struct output output_none(void)
{
	return (struct output){ .fd = -1 };
}

/*
 * Make an output to the file @config->fd, which belongs to the output on success. @config->room is
 * borrowed.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int output_init(struct output *output, const struct sink_config *config);

/* Make an output to a new file of the directory (decoder/util/outdir.h). Return: likewise. */
_must_check_ int output_create(struct output *output, int dir_fd, const char *name, uint64_t *room);

/* Free the buffer, whose contents are lost, and close the file. */
void output_deinit(struct output *output);

/* Write the buffer of a file out. Return: 0, or negative errno. */
_must_check_ int output_flush(struct output *output);

/* Flush, and close the file. Return: 0, or negative errno. */
_must_check_ int output_finish(struct output *output);

/* For output_reserve(): make room if the buffer has none for @size bytes. Return: 0 or -errno. */
_must_check_ int output_make_room(struct output *output, size_t size);

/*
 * Make room for @size bytes (at most OUTPUT_SIZE) at output->buffer + output->n_used. The caller
 * writes there and adds the number of bytes to output->n_used.
 *
 * Return: 0, or negative errno.
 */
_must_check_ static inline int output_reserve(struct output *output, size_t size)
{
	return output->n_capacity - output->n_used >= size ? output->error
							   : output_make_room(output, size);
}

/*
 * Cut lines from now on at the width of the terminal, if the output is one. It is for text that
 * people read, in UTF-8, with newlines as the only control characters.
 */
void output_fit(struct output *output);

/* Add the line that explains times. It begins with '#'. */
void output_clock(struct output *output, const struct ptd_info *info);

#define OUTPUT_NAME_MAX 1024 /* bytes of a name that are shown */

/* Add a foreign name, as output_printable() has it; of a longer one the first bytes. */
void output_name(struct output *output, const char *name);

/* Add " (OBJECT)", behind the name of what is in it. */
void output_object(struct output *output, const char *object);

/* Add "PID/TID COMM"; '?' stands for what is not known. @comm may be NULL. */
void output_thread(struct output *output, uint32_t pid, uint32_t tid, const char *comm);

/*
 * Copy at most @n_max bytes of @name, which is foreign, so that the copy can neither control a
 * terminal nor break a line.
 *
 * Return: the number of bytes in @ret_text; no NUL is added.
 */
size_t output_printable(char *ret_text, const char *name, size_t n_max);
