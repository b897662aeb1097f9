/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "decoder/util/outdir.h"
#include "util/fullwrite.h"

#define PRINTF_MAX 4096

#define DIRECT_SIZE ((size_t)64 << 10)

int output_init(struct output *output, const struct sink_config *config)
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

	*output = (struct output){
		.buffer = buffer,
		.n_capacity = OUTPUT_SIZE,
		.fd = config->fd,
		.room = config->room,
	};
	return 0;
}

int output_create(struct output *output, int dir_fd, const char *name, uint64_t *room)
{
	struct sink_config config = { .fd = outdir_open(dir_fd, name, true), .room = room };
	const int r = config.fd < 0 ? config.fd : output_init(output, &config);

	if (r < 0 && config.fd >= 0)
		(void)fd_close(config.fd);
	return r;
}

void output_deinit(struct output *output)
{
	(void)fd_close(output->fd);
	free(output->buffer);
	*output = output_none();
}

/* Write as many of the bytes as output->room permits. */
static int write_within(const struct output *output, const uint8_t *bytes, size_t n_bytes)
{
	size_t size = n_bytes;
	int r;

	if (output->room && size > *output->room)
		size = (size_t)*output->room;
	r = fullwrite(output->fd, bytes, size);
	if (output->room)
		*output->room -= size;
	return r == 0 && size < n_bytes ? -EFBIG : r;
}

void output_fit(struct output *output)
{
	struct winsize size;

	if (output->fd >= 0 && ioctl(output->fd, TIOCGWINSZ, &size) == 0)
		output->columns = size.ws_col;
}

/* Remove from the buffer what stands behind the last column. */
static void cut_lines(struct output *output)
{
	size_t n = 0;

	for (size_t i = 0; i < output->n_used; i++) {
		const uint8_t byte = output->buffer[i];

		/* A character of UTF-8 goes on with bytes from 0x80 to 0xbf. */
		if (byte == '\n')
			output->column = 0;
		else if (byte < 0x80 || byte > 0xbf)
			output->column++;
		if (output->column <= output->columns)
			output->buffer[n++] = byte;
	}
	output->n_used = n;
}

int output_flush(struct output *output)
{
	if (output->columns > 0)
		cut_lines(output);
	if (output->error == 0)
		output->error = write_within(output, output->buffer, output->n_used);
	output->n_used = 0;
	return output->error;
}

int output_finish(struct output *output)
{
	const int r = output_flush(output);

	/* Some file systems report only here that the disk is full. */
	if (output->fd >= 0 && close(output->fd) < 0 && r == 0)
		output->error = -errno;
	output->fd = -1;
	return output->error;
}

static int grow(struct output *output, size_t size)
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

int output_make_room(struct output *output, size_t size)
{
	if (output->error < 0)
		return output->error;
	if (output->grows)
		return grow(output, size);
	if (!output->buffer)
		return output->error = -EBADF;
	return output_flush(output);
}

int output_write(struct output *output, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	/* Many bytes at once need no buffer. */
	if (size >= DIRECT_SIZE && !output->grows && output->columns == 0 && output->buffer &&
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

void output_printf(struct output *output, const char *format, ...)
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

void output_clock(struct output *output, const struct ptd_info *info)
{
	if (info->clock == PTD_CLOCK_TSC)
		output_printf(output, "# time in TSC ticks\n");
	else if (info->clock != PTD_CLOCK_NS)
		output_printf(output, "# no time in this trace\n");
	else if (info->realtime_offset_ns == 0)
		output_printf(output, "# time in seconds on the recorder's clock\n");
	else
		output_printf(output,
			      "# time in seconds on the recorder's clock; CLOCK_REALTIME is "
			      "%" PRId64 " ns more\n",
			      info->realtime_offset_ns);
}

void output_name(struct output *output, const char *name)
{
	if (output_reserve(output, OUTPUT_NAME_MAX) == 0)
		output->n_used += output_printable((char *)output->buffer + output->n_used, name,
						   OUTPUT_NAME_MAX);
}

void output_object(struct output *output, const char *object)
{
	output_printf(output, " (");
	output_name(output, object);
	output_printf(output, ")");
}

static void put_id(struct output *output, uint32_t id, char end)
{
	if (id == PTD_ID_UNKNOWN)
		output_printf(output, "?%c", end);
	else
		output_printf(output, "%" PRIu32 "%c", id, end);
}

void output_thread(struct output *output, uint32_t pid, uint32_t tid, const char *comm)
{
	put_id(output, pid, '/');
	put_id(output, tid, ' ');
	output_name(output, comm ?: "?");
}

size_t output_printable(char *ret_text, const char *name, size_t n_max)
{
	const size_t n = strnlen(name, n_max);

	memcpy(ret_text, name, n);
	printable_clean(ret_text, n);
	return n;
}
