/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitdump magic
 *
 * The first bytes of a jitdump, by which it is known: compilers give the file various names.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define JITMAGIC_SIZE 4

/* Return: whether @bytes begin a jitdump, of either byte order. */
static inline bool jitmagic_is(const uint8_t bytes[static JITMAGIC_SIZE])
{
	return memcmp(bytes, "DTiJ", JITMAGIC_SIZE) == 0 ||
	       memcmp(bytes, "JiTD", JITMAGIC_SIZE) == 0;
}
