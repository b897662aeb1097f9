/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf attrs
 *
 * The events of a recording: for each, what it was asked to record (struct perf_event_attr), and
 * its event ids. The trailer of a record has the fields that the attr of its event states.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "util/map.h"
#include "util/vec.h"

/* The fields of an attr that the decoder needs. */
struct perfattr {
	uint32_t type;
	uint64_t config;
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t branch_sample_type;
	uint64_t regs_user, regs_intr; /* masks */
	bool sample_id_all;
	bool use_clockid; /* times are of the clock that perf record -k named */
};

struct perfattrs {
	VEC(struct perfattr) list;
	struct map by_id; /* event id → index */
};

void perfattrs_deinit(struct perfattrs *attrs);

/*
 * Append the struct perf_event_attr at @c, which then stands behind it. The struct has the size
 * that the recording kernel gave it: missing fields are 0, and newer fields are skipped.
 *
 * Return: 0; -EBADMSG if the struct does not fit into @c or states a size below 64; -ENOMEM.
 */
_must_check_ int perfattrs_add(struct perfattrs *attrs, struct cursor *c);

/* Give the last attr the event ids in @ids, uint64_t each. Return: 0 or -ENOMEM. */
_must_check_ int perfattrs_add_ids(struct perfattrs *attrs, struct cursor ids);

/*
 * Return: the attr of the event with this id; the first attr if the id is 0 or belongs to no attr;
 *         NULL if there are no attrs.
 */
const struct perfattr *perfattrs_of_id(const struct perfattrs *attrs, uint64_t id);

/*
 * Return: the attr of the event that a kernel record with this @body belongs to, by the id in the
 *         record's trailer; as above. (The records that perf synthesizes have the id 0.)
 */
const struct perfattr *perfattrs_of_record(const struct perfattrs *attrs, struct cursor body);
