/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code image
 *
 * A snapshot's file of the code that a program ran (struct ptd_code_header), while it is made:
 * first bytes by address, then changes by time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/snapshot.h"
#include "util/vec.h"

struct codeimage {
	VEC(struct ptd_code_piece) pieces; /* their offsets count from the first of @bytes */
	VEC(uint8_t) bytes;
};

void codeimage_deinit(struct codeimage *image);

/* Add @bytes that were at @address since ever, behind those before. Return: 0 or -ENOMEM. */
_must_check_ int codeimage_add_first(struct codeimage *image, uint64_t address,
				     const uint8_t *bytes, size_t size);

/* Add what is at @address from @time on, which is not before those before; @bytes: NULL if they are
 * not known. Return: 0 or -ENOMEM. */
_must_check_ int codeimage_add(struct codeimage *image, uint64_t time, uint64_t address,
			       const uint8_t *bytes, uint64_t size);

/* Return: the size of the file. */
size_t codeimage_size(const struct codeimage *image);

/* Return: 0, and the file in @ret_bytes, which the caller frees; or -ENOMEM. */
_must_check_ int codeimage_print(const struct codeimage *image, uint8_t **ret_bytes,
				 size_t *ret_size);
