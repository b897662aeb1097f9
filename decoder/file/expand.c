/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/expand.h"

#include <errno.h>
#include <zstd.h>

#define BUFFER_SIZE (size_t)(1 << 17)

/* A window of perf's compression levels, up to 22: no stream needs more memory. */
#define WINDOW_LOG_MAX 27

void expand_deinit(struct expand *expand)
{
	ZSTD_freeDStream(expand->stream);
	free(expand->buffer);
	spill_deinit(&expand->out);
	vec_deinit(&expand->parts);
	*expand = (struct expand){ .out.spills = expand->out.spills };
}

static int start_stream(struct expand *expand)
{
	expand->stream = ZSTD_createDStream();
	expand->buffer = malloc(BUFFER_SIZE);
	if (!expand->stream || !expand->buffer)
		return -ENOMEM;
	if (ZSTD_isError(
		ZSTD_DCtx_setParameter(expand->stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		return -ENOMEM;
	return 0;
}

int expand_add(struct expand *expand, struct cursor bytes, uint64_t file_offset)
{
	ZSTD_inBuffer in = { .src = bytes.pos, .size = cursor_left(&bytes) };
	ZSTD_outBuffer out;
	int r = 0;

	if (!expand->stream)
		r = start_stream(expand);
	if (r == 0)
		r = vec_push(&expand->parts,
			     { .start = expand->out.size, .file_offset = file_offset });
	if (r < 0)
		return r;

	expand->n_in += in.size;
	do {
		out = (ZSTD_outBuffer){ .dst = expand->buffer, .size = BUFFER_SIZE };
		if (ZSTD_isError(ZSTD_decompressStream(expand->stream, &out, &in)))
			return -EBADMSG;
		if (expand->out.size + out.pos > EXPAND_MIN + expand->n_in * EXPAND_RATIO_MAX)
			return -EFBIG;
		r = spill_write(&expand->out, expand->buffer, out.pos);
		if (r < 0)
			return r;
		/* A full buffer may have more behind it. */
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}

struct spillfile expand_finish(struct expand *expand)
{
	ZSTD_freeDStream(expand->stream);
	expand->stream = NULL;
	return spill_finish(&expand->out);
}

uint64_t expand_file_offset(const struct expand *expand, uint64_t position)
{
	const size_t n = vec_bisect(&expand->parts, part, part->start <= position);

	return expand->parts.n ? expand->parts.items[n > 0 ? n - 1 : 0].file_offset : 0;
}
