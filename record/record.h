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
#include "util/buildid.h"
#include "util/perfabi.h"

/* Event ids: the snapshot's two attrs, and the only ids its trailers may hold. */
#define RECORD_ID_PT       UINT64_C(1)
#define RECORD_ID_SIDEBAND UINT64_C(2)

/* Size of the largest record: a multiple of 8 that fits perf_event_header.size. */
#define RECORD_SIZE_MAX 65528u

enum {
	RECORD_END = 1, /* the cursor is empty */
};

struct record {
	struct perf_event_header header;
	struct perfabi_trailer trailer;
	struct cursor body;   /* between the two; points into the walked bytes */
	const uint8_t *bytes; /* of the whole record */
};

struct record_mmap2 {
	uint32_t pid;
	uint32_t tid;
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff;
	struct buildid build_id; /* size 0 if the record carries none */
	uint32_t maj, min;       /* device and inode of the file; 0 if it carries a build-id */
	uint64_t ino;
	uint32_t prot;
	uint32_t flags;   /* MAP_SHARED, MAP_PRIVATE, … */
	const char *name; /* in the record's bytes, ended by NUL */
};

struct record_task {
	uint32_t pid;
	uint32_t ppid;
	uint32_t tid;
	uint32_t ptid;
};

/*
 * Split off the next record.
 *
 * Return: 0; RECORD_END; or -EBADMSG if the bytes at the cursor are no whole record of a known type
 *         with a trailer of ours; the cursor then stays.
 */
_must_check_ int record_next(struct cursor *c, struct record *ret_record);

/* Read the body of a PERF_RECORD_MMAP2. Return: 0, or -EBADMSG. */
_must_check_ int record_get_mmap2(const struct record *record, struct record_mmap2 *ret_mmap2);

/* Read the body of a PERF_RECORD_FORK or PERF_RECORD_EXIT. Return: 0, or -EBADMSG. */
_must_check_ int record_get_task(const struct record *record, struct record_task *ret_task);

/*
 * Find where whole switch records begin in what is left of a ring that its writer overwrites.
 *
 * The ring's oldest record is usually cut. From @ret_start on, which is at most @size, the bytes
 * are an unbroken chain of switch records of @cpu whose times do not go back, up to the very end.
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int record_resync(const uint8_t *bytes, size_t size, uint32_t cpu, size_t *ret_start);
