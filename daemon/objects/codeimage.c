/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/codeimage.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define UNKNOWN UINT64_MAX /* offset of what has no bytes */

void codeimage_deinit(struct codeimage *image)
{
	vec_deinit(&image->pieces);
	vec_deinit(&image->bytes);
}

/* Return: whether @size bytes more, and a piece more if @is_piece, would be too many. */
static bool is_full(const struct codeimage *image, bool is_piece, uint64_t size)
{
	const uint64_t now = codeimage_size(image) + (is_piece ? sizeof(*image->pieces.items) : 0);

	return now > image->size_max || size > image->size_max - now;
}

static int add_bytes(struct codeimage *image, const uint8_t *bytes, size_t size)
{
	if (vec_reserve(&image->bytes, size) < 0)
		return -ENOMEM;
	memcpy(image->bytes.items + image->bytes.n, bytes, size);
	image->bytes.n += size;
	return 0;
}

static int append_piece(struct codeimage *image, uint64_t time, uint64_t address,
			const uint8_t *bytes, uint64_t size)
{
	const struct ptd_code_piece piece = {
		.time = time,
		.address = address,
		.offset = bytes ? image->bytes.n : UNKNOWN,
		.size = size,
	};
	int r;

	if (is_full(image, true, bytes ? size : 0))
		return CODEIMAGE_FULL;
	r = bytes ? add_bytes(image, bytes, size) : 0;
	return r < 0 ? r : vec_push(&image->pieces, piece);
}

int codeimage_add_first(struct codeimage *image, uint64_t address, const uint8_t *bytes,
			size_t size)
{
	struct ptd_code_piece *last =
	    image->pieces.n > 0 ? &image->pieces.items[image->pieces.n - 1] : NULL;
	int r;

	if (!last || last->address + last->size != address)
		return append_piece(image, 0, address, bytes, size);
	if (is_full(image, false, size))
		return CODEIMAGE_FULL;
	r = add_bytes(image, bytes, size);
	if (r == 0)
		last->size += size;
	return r;
}

int codeimage_add(struct codeimage *image, uint64_t time, uint64_t address, const uint8_t *bytes,
		  uint64_t size)
{
	return append_piece(image, time ?: 1, address, bytes, size);
}

static size_t size_before_bytes(const struct codeimage *image)
{
	return sizeof(struct ptd_code_header) + image->pieces.n * sizeof(*image->pieces.items);
}

size_t codeimage_size(const struct codeimage *image)
{
	return size_before_bytes(image) + image->bytes.n;
}

int codeimage_print(const struct codeimage *image, uint8_t **ret_bytes, size_t *ret_size)
{
	const struct ptd_code_header header = {
		.magic = PTD_CODE_MAGIC,
		.version = PTD_CODE_VERSION,
		.n_pieces = (uint32_t)image->pieces.n,
	};
	const size_t n_before = size_before_bytes(image), size = codeimage_size(image);
	uint8_t *bytes = malloc(size), *end = bytes;

	if (!bytes)
		return -ENOMEM;
	memcpy(end, &header, sizeof(header));
	end += sizeof(header);
	for (size_t i = 0; i < image->pieces.n; i++) {
		struct ptd_code_piece piece = image->pieces.items[i];

		piece.offset = piece.offset == UNKNOWN ? 0 : n_before + piece.offset;
		memcpy(end, &piece, sizeof(piece));
		end += sizeof(piece);
	}
	if (image->bytes.n > 0)
		memcpy(end, image->bytes.items, image->bytes.n);
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}
