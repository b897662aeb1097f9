/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Walk
 *
 * The records of a perf.data file (the file form), read for the tests alone: it shares no code with
 * the decoder, so that the two cannot share a mistake.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct walk_record {
	uint64_t offset; /* of its header, in the file */
	uint64_t size;   /* with header, and with the bytes that follow an AUXTRACE, as stated */
	uint64_t time;   /* of its trailer; 0: none, or before everything */
	uint32_t type;
	uint16_t misc;
	const uint8_t *payload; /* between header and trailer */
	size_t payload_size;
};

struct walk {
	VEC(struct walk_record) records; /* in the order of the file */
	uint64_t data_offset;
	uint64_t data_end; /* as the header states: may lie beyond the file */
};

/*
 * Read the records of the @size bytes of a file, up to the end or to the first that makes no sense
 * or is cut off (an AUXTRACE whose bytes are cut off is still listed). They point into @bytes.
 *
 * Return: 0; -EBADMSG if it has no header of the file form; -ENOMEM.
 */
_must_check_ int walk_read(const uint8_t *bytes, size_t size, struct walk *ret_walk);
void walk_deinit(struct walk *walk);
