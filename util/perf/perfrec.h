/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf record
 *
 * Walks a run of raw PERF_RECORD_* bytes, as the kernel wrote them to its ring and perf to the data
 * section, one record at a time, whatever its type is.
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
