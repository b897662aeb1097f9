/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Unpack
 *
 * Reads a file whole, through the library that its suffix asks for: minizip for ".zip", lz4 for
 * ".lz4", and zlib, which takes plain bytes too, for others. If that does not work, or a checksum
 * is wrong, the test fails.
 */

#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

struct unpacked {
	VEC(uint8_t) bytes; /* of all members, one behind the other */
	VEC(size_t) ends;   /* of each member; of other files, of the whole */
	VEC(char *) names;  /* of each member */
};

struct unpacked unpack(const char *path);
void unpacked_deinit(struct unpacked *unpacked);
