/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code image
 *
 * The file of a snapshot that has the code a program ran (struct ptd_code_header), while it is put
 * together: first bytes by address, then changes by time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/snapshot.h"
#include "util/vec.h"

/* An image that is all zero but for @size_max is empty. */
struct codeimage {
	uint64_t size_max;                 /* of the file, in bytes */
	VEC(struct ptd_code_piece) pieces; /* whose offsets count from the start of @bytes */
	VEC(uint8_t) bytes;
};

enum {
	_CODEIMAGE_SUCCESS,

	CODEIMAGE_FULL, /* the file would be larger than @size_max; nothing was added */
};

void codeimage_deinit(struct codeimage *image);

/*
 * Add @bytes that were at @address from the beginning. @address is above those added before.
 *
 * Return: 0; CODEIMAGE_FULL; -ENOMEM.
 */
_must_check_ int codeimage_add_first(struct codeimage *image, uint64_t address,
				     const uint8_t *bytes, size_t size);

/*
 * Add @bytes that are at @address from @time on, or NULL if they are not known. @time is not before
 * the times added before.
 *
 * Return: as above.
 */
_must_check_ int codeimage_add(struct codeimage *image, uint64_t time, uint64_t address,
			       const uint8_t *bytes, uint64_t size);

/* Return: the size of the file in bytes. */
size_t codeimage_size(const struct codeimage *image);

/* Make the file in memory. Return: 0 and @ret_bytes, which the caller frees; or -ENOMEM. */
_must_check_ int codeimage_print(const struct codeimage *image, uint8_t **ret_bytes,
				 size_t *ret_size);
