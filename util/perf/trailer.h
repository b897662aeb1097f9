/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trailer
 *
 * What a kernel record ends with when its event was opened with sample_id_all: who made the record,
 * where and when (struct sample_id in <linux/perf_event.h>). The event's sample_type says which
 * fields are there. Records that ptd writes have the trailer of PERFABI_SAMPLE_TYPE.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

#define TRAILER_SIZE 32 /* in bytes, of PERFABI_SAMPLE_TYPE */

struct trailer {
	uint32_t pid; /* UINT32_MAX if the sample_type has no such field, like tid and cpu */
	uint32_t tid;
	uint64_t time; /* in ns; 0 if there is no such field, like id */
	uint32_t cpu;
	uint64_t id; /* of the event */
};

/* Write the trailer of PERFABI_SAMPLE_TYPE. */
void trailer_write(const struct trailer *trailer, uint8_t ret_bytes[static TRAILER_SIZE]);

/*
 * Take the trailer that @sample_type describes off the end of @body.
 *
 * Return: 0; -EBADMSG if @body is shorter than the trailer, and then nothing is changed.
 */
_must_check_ int trailer_take(struct cursor *body, uint64_t sample_type,
			      struct trailer *ret_trailer);

/* Return: the event id in the trailer of a record of @sample_type; 0 if it has none. Events that
 * agree on where the id is need not agree on the rest of their sample_type. */
uint64_t trailer_id(struct cursor body, uint64_t sample_type);
