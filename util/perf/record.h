/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Record
 *
 * A walk over perf records that end with the trailer of PERFABI_SAMPLE_TYPE: task and switch
 * records as a source gives them. They were written by somebody else, so each is checked for what
 * a reader of the snapshot will rely on.
 */

#include <linux/perf_event.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "util/perf/codec.h"
#include "util/perf/trailer.h"

enum {
	RECORD_END = 1, /* the cursor is empty */
};

struct record {
	struct perf_event_header header;
	struct trailer trailer; /* whose id is that of the event */
	struct cursor body;     /* between the two; points into the walked bytes */
	const uint8_t *bytes;   /* of the whole record */
};

/*
 * Split off the next record.
 *
 * Return: 0; RECORD_END; or -EBADMSG if the bytes at the cursor are no whole record of a known type
 *         with a trailer of ours; the cursor then stays.
 */
_must_check_ int record_next(struct cursor *c, struct record *ret_record);

/* Read an MMAP2. Return: 0, or -EBADMSG if the record is of another type or makes no sense. */
_must_check_ int record_get_mmap2(const struct record *record, struct record_mmap2 *ret_mmap2);

/* Read a FORK or EXIT. Return: 0, or -EBADMSG if the record is of another type. */
_must_check_ int record_get_task(const struct record *record, struct record_task *ret_task);

/* Give the record of @size bytes at @bytes, which has a trailer of PERFABI_SAMPLE_TYPE, another
 * event id. */
void record_set_id(uint8_t *bytes, size_t size, uint64_t id);

/* Have the MMAP2 record at @bytes, which record_next() took, name the file by device and inode in
 * the place of its build-id. */
void record_set_inode(uint8_t *bytes, uint32_t maj, uint32_t min, uint64_t ino);

/*
 * Find where whole switch records begin in what is left of a ring that its writer overwrites.
 *
 * The ring's oldest record is usually cut. From @ret_start on, which is at most @size, the bytes
 * are an unbroken chain of switch records of @cpu whose times do not go back, up to the very end.
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int record_resync(const uint8_t *bytes, size_t size, uint32_t cpu, size_t *ret_start);
