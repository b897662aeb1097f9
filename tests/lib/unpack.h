/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Unpack
 *
 * Reads a file whole, by minizip if its name ends with ".zip", and by zlib, which takes plain bytes
 * too, otherwise. If that does not work, or a checksum is wrong, the test fails.
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
