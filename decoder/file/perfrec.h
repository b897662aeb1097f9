/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf records
 *
 * Walks a run of raw PERF_RECORD_* bytes, as the kernel wrote them to its ring and perf to the data
 * section, one record at a time; and takes the trailer (sample_id_all) off a record's end.
 */

#include <stdint.h>

#include "base/cursor.h"

enum {
	_PERFREC_SUCCESS,

	PERFREC_END,       /* no bytes left */
	PERFREC_TRUNCATED, /* the last record is cut off */
};

struct perfrec {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	struct cursor body; /* borrowed: points into the caller's bytes */
};

/* What the trailer states; UINT32_MAX for a pid, tid or cpu, and 0 for the rest, if it does not. */
struct perfrec_trailer {
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
	uint64_t time;
};

/*
 * Step to the next record.
 *
 * On success @ret_rec is filled and @c stands behind the record. On any other
 * outcome neither is changed.
 *
 * Return: 0, PERFREC_END, PERFREC_TRUNCATED; -EBADMSG if the record's own size
 *         is smaller than its header.
 */
_must_check_ int perfrec_next(struct cursor *c, struct perfrec *ret_rec);

/* Return: the event id in the trailer of a record of @sample_type; 0 if it has none. */
uint64_t perfrec_id(struct cursor body, uint64_t sample_type);

/*
 * Take the trailer that @sample_type describes off the end of @body.
 *
 * Return: 0; -EBADMSG if @body is shorter than it, and then nothing is changed.
 */
_must_check_ int perfrec_take_trailer(struct cursor *body, uint64_t sample_type,
				      struct perfrec_trailer *ret_trailer);

/*
 * Read the NUL-terminated string at @c, which then stands behind the NUL.
 *
 * Return: 0 and @ret_string, in the caller's bytes; -EBADMSG if there is no NUL.
 */
_must_check_ int perfrec_get_string(struct cursor *c, const char **ret_string);
