/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/gzip.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#include "decoder/sink/output.h"

#define LEVEL          1
#define LEVEL_BUF_SIZE ISAL_DEF_LVL1_DEFAULT
#define PIECE_SIZE     ((size_t)1 << 16) /* bytes of room for what is compressed */

struct gzip {
	struct ptd_output *output;
	struct isal_zstream stream;
	uint8_t level_buf[LEVEL_BUF_SIZE];
};

int gzip_new(struct ptd_output *output, struct gzip **ret_gzip)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return -ENOMEM;
	gzip->output = output;
	isal_deflate_init(&gzip->stream);
	gzip->stream.gzip_flag = IGZIP_GZIP;
	gzip->stream.level = LEVEL;
	gzip->stream.level_buf = gzip->level_buf;
	gzip->stream.level_buf_size = LEVEL_BUF_SIZE;
	*ret_gzip = gzip;
	return 0;
}

/* Compress what the stream has, until the output is not full any more. */
static int deflate_all(struct gzip *gzip)
{
	struct isal_zstream *stream = &gzip->stream;
	struct ptd_output *output = gzip->output;

	do {
		if (output_reserve(output, PIECE_SIZE) < 0)
			return output->error;
		stream->next_out = output->buffer + output->n_used;
		stream->avail_out = (uint32_t)PIECE_SIZE;
		if (isal_deflate(stream) != COMP_OK)
			return -EIO;
		output->n_used += PIECE_SIZE - stream->avail_out;
	} while (stream->avail_out == 0);
	return 0;
}

int gzip_write(struct gzip *gzip, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	int r = 0;

	while (r == 0 && size > 0) {
		const uint32_t n = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;

		gzip->stream.next_in = (uint8_t *)(uintptr_t)from; /* is only read */
		gzip->stream.avail_in = n;
		r = deflate_all(gzip);
		from += n;
		size -= n;
	}
	return r;
}

int gzip_finish(struct gzip *gzip)
{
	gzip->stream.end_of_stream = 1;
	return deflate_all(gzip);
}

struct gzip *gzip_free(struct gzip *gzip)
{
	free(gzip);
	return NULL;
}
