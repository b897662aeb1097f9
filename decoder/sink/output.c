/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"

#define PRINTF_MAX 4096

#define DIRECT_SIZE ((size_t)64 << 10)

int output_init(struct ptd_output *output, const struct ptd_sink_config *config)
{
	struct stat st;
	uint8_t *buffer;

	if (fstat(config->fd, &st) < 0)
		return -errno;
	if (config->is_emptied && S_ISREG(st.st_mode) && ftruncate(config->fd, 0) < 0)
		return -errno;
	buffer = malloc(OUTPUT_SIZE);
	if (!buffer)
		return -ENOMEM;

	*output = (struct ptd_output){
		.buffer = buffer,
		.n_capacity = OUTPUT_SIZE,
		.fd = config->fd,
		.room = config->room,
	};
	return 0;
}

void output_deinit(struct ptd_output *output)
{
	(void)fd_close(output->fd);
	free(output->buffer);
	*output = output_none();
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		const ssize_t n = write(fd, bytes, size);

		if (n >= 0) {
			bytes += n;
			size -= (size_t)n;
		} else if (errno == EAGAIN) {
			/* A pipe that was made by another program may be non-blocking. */
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			(void)poll(&p, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* Write as many of the bytes as output->room permits. */
static int write_within(const struct ptd_output *output, const uint8_t *bytes, size_t n_bytes)
{
	size_t size = n_bytes;
	int r;

	if (output->room && size > *output->room)
		size = (size_t)*output->room;
	r = write_all(output->fd, bytes, size);
	if (output->room)
		*output->room -= size;
	return r == 0 && size < n_bytes ? -EFBIG : r;
}

int output_flush(struct ptd_output *output)
{
	if (output->error == 0)
		output->error = write_within(output, output->buffer, output->n_used);
	output->n_used = 0;
	return output->error;
}

int output_finish(struct ptd_output *output)
{
	const int r = output_flush(output);

	/* Some file systems report only here that the disk is full. */
	if (output->fd >= 0 && close(output->fd) < 0 && r == 0)
		output->error = -errno;
	output->fd = -1;
	return output->error;
}

static int grow(struct ptd_output *output, size_t size)
{
	size_t n_capacity = output->n_capacity ?: 4096;
	uint8_t *buffer;

	while (n_capacity - output->n_used < size)
		n_capacity *= 2;
	buffer = realloc(output->buffer, n_capacity);
	if (!buffer)
		return output->error = -ENOMEM;
	output->buffer = buffer;
	output->n_capacity = n_capacity;
	return 0;
}

int output_make_room(struct ptd_output *output, size_t size)
{
	if (output->error < 0)
		return output->error;
	if (output->grows)
		return grow(output, size);
	if (!output->buffer)
		return output->error = -EBADF;
	return output_flush(output);
}

int ptd_output_write(struct ptd_output *output, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	/* Many bytes at once need no buffer. */
	if (size >= DIRECT_SIZE && !output->grows && output->buffer &&
	    (output->n_used == 0 || output_flush(output) == 0)) {
		if (output->error == 0)
			output->error = write_within(output, from, size);
		return output->error;
	}
	while (size > 0) {
		const size_t n = size < OUTPUT_SIZE ? size : OUTPUT_SIZE;

		if (output_reserve(output, n) < 0)
			break;
		memcpy(output->buffer + output->n_used, from, n);
		output->n_used += n;
		from += n;
		size -= n;
	}
	return output->error;
}

void ptd_output_printf(struct ptd_output *output, const char *format, ...)
{
	va_list ap;
	int n;

	if (output_reserve(output, PRINTF_MAX) < 0)
		return;
	va_start(ap, format);
	n = vsnprintf((char *)output->buffer + output->n_used, PRINTF_MAX, format, ap);
	va_end(ap);
	if (n > 0)
		output->n_used += n < PRINTF_MAX ? (size_t)n : PRINTF_MAX - 1;
}

size_t output_printable(char *ret_text, const char *name, size_t n_max)
{
	const size_t n = strnlen(name, n_max);

	memcpy(ret_text, name, n);
	printable_clean(ret_text, n);
	return n;
}
