/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * FDR record
 *
 * One record of a flight data recorder file (decoder/util/fdr.h), whatever its version and byte
 * order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/util/fdr.h"

/* How the records of a file are to be read. */
struct fdrformat {
	uint16_t version;
	bool is_big_endian;
};

/* The header of a file. */
struct fdrheader {
	struct fdrformat format;
	uint32_t flags;     /* enum fdr_flag */
	uint64_t frequency; /* ticks per second; 0: not known */
	uint64_t data_size;
};

struct fdrrecord {
	bool is_function;
	uint8_t kind; /* enum fdr_kind; of a function record: enum fdr_action */
	uint32_t function;
	bool has_delta; /* time is @delta ticks after the last; else, if the kind has one, @time */
	uint32_t delta;
	uint64_t time;   /* ticks; of FDR_WALL_TIME: seconds */
	uint32_t micros; /* of FDR_WALL_TIME */
	uint32_t cpu;
	uint32_t id;    /* of FDR_NEW_BUFFER and FDR_PID: thread or process */
	uint16_t type;  /* of FDR_TYPED_EVENT */
	uint64_t value; /* of FDR_CALL_ARGUMENT */
	uint64_t size;  /* bytes behind the record: of an event's data, or of the block */
};

/*
 * Get the header. Return: 0; -EBADMSG: it is not one of a version from 1 to FDR_VERSION_MAX, or not
 *         of FDR_TYPE.
 */
_must_check_ int fdrheader_get(struct cursor *c, struct fdrheader *ret_header);

/*
 * Get the next record, without an event's data, which are behind it.
 *
 * Return: 0; -ENODATA: the bytes end in it; -EBADMSG, and @reterr_fault: what is wrong with it, a
 *         text that stays.
 */
_must_check_ int fdrrecord_get(struct cursor *c, const struct fdrformat *format,
			       struct fdrrecord *ret_record, const char **reterr_fault);
