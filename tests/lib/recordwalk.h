/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Record walk
 *
 * Reads the records of a perf.data file in the file form. Only tests use this reader: it shares no
 * code with the decoder, so that the two cannot share a mistake.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct recordwalk_record {
	uint64_t offset; /* of its header, in the file */
	uint64_t size;   /* as stated: with the header, and with the bytes after an AUXTRACE */
	uint64_t time;   /* of its trailer; 0: it has none, or it comes before all others */
	uint32_t type;
	uint16_t misc;
	const uint8_t *payload; /* between header and trailer */
	size_t payload_size;
};

struct recordwalk {
	VEC(struct recordwalk_record) records; /* in the order of the file */
	uint64_t data_offset;
	/* As the header states: may lie beyond the file, and does if the header states nothing. */
	uint64_t data_end;
};

/*
 * Read the records of a file of @size bytes, up to the end or to the first record that is malformed
 * or cut off; an AUXTRACE whose bytes are cut off is still listed. The records point into @bytes.
 *
 * Return: 0; -EBADMSG if it has no header of the file form; -ENOMEM.
 */
_must_check_ int recordwalk_read(const uint8_t *bytes, size_t size, struct recordwalk *ret_walk);
void recordwalk_deinit(struct recordwalk *walk);
