/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/minidebug.h"

#include <errno.h>
#include <lzma.h>

#include "decoder/symbol/elfsym.h"
#include "decoder/util/filebytes.h"
#include "util/vec.h"

#define STEP        (UINT64_C(1) << 18)
#define LZMA_MEMORY (UINT64_C(128) << 20) /* xz -9 needs 65 MiB to decompress */

struct bytes {
	VEC(uint8_t) of;
};

/* Return: 0, and an empty @bytes if the input is damaged or too large; or -ENOMEM. */
static int decompress(lzma_stream *stream, struct bytes *bytes)
{
	lzma_ret status = LZMA_OK;

	while (status == LZMA_OK && bytes->of.n <= MINIDEBUG_MAX) {
		int r = vec_reserve(&bytes->of, STEP);

		if (r < 0)
			return r;
		stream->next_out = bytes->of.items + bytes->of.n;
		stream->avail_out = STEP;
		status = lzma_code(stream, LZMA_FINISH);
		bytes->of.n += STEP - stream->avail_out;
	}
	if (status == LZMA_MEM_ERROR)
		return -ENOMEM;
	if (status != LZMA_STREAM_END || bytes->of.n > MINIDEBUG_MAX)
		bytes->of.n = 0;
	return 0;
}

static int decompress_section(const struct elfsym *elf, struct elfsym_section *section,
			      struct bytes *bytes)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret status;
	int r = 0;

	stream.next_in = elfsym_bytes(elf, section);
	stream.avail_in = stream.next_in ? section->size : 0;
	status = lzma_stream_decoder(&stream, LZMA_MEMORY, 0);
	if (status == LZMA_OK)
		r = decompress(&stream, bytes);
	lzma_end(&stream);
	return status == LZMA_MEM_ERROR ? -ENOMEM : r;
}

int minidebug_read(struct filebytes *file, struct minidebug *ret_minidebug)
{
	_cleanup_(elfsym_deinit) struct elfsym elf = {};
	struct minidebug minidebug = {};
	struct elfsym_section *section;
	struct bytes bytes = {};
	int r;

	r = elfsym_init(&elf, file);
	if (r < 0)
		return r;
	section = elfsym_find(&elf, SHT_PROGBITS, ".gnu_debugdata");
	if (section)
		r = decompress_section(&elf, section, &bytes);
	if (r == 0 && bytes.of.n > 0)
		r = filebytes_new_in_memory(bytes.of.items, bytes.of.n, &minidebug.file);
	if (minidebug.file)
		minidebug.bytes = TAKE(bytes.of.items);
	vec_deinit(&bytes.of);
	if (r == 0)
		*ret_minidebug = minidebug;
	return r;
}

void minidebug_deinit(struct minidebug *minidebug)
{
	minidebug->file = filebytes_unref(minidebug->file);
	free(minidebug->bytes);
	minidebug->bytes = NULL;
}
