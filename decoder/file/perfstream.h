/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf stream
 *
 * The records of a perf.data file, whichever form it has (file or pipe), and the trace that is made
 * of them. The caller hands in the records, and what the header of the file form has (attrs and
 * features; in the pipe form these are records).
 *
 * The trace is put together when all records were seen: only then is it known which attr each
 * record belongs to, and with the attr where the record's time and thread are; which samples are of
 * which tracepoint; and which pieces of PT go together.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/file/auxtrace.h"
#include "decoder/file/perfattr.h"
#include "decoder/file/reading.h"
#include "decoder/file/tracepoint.h"
#include "decoder/trace/auxqueue.h"
#include "decoder/trace/trace.h"
#include "decoder/util/spill.h"
#include "util/message.h"
#include "util/vec.h"
#include "util/window.h"

/*
 * Expands the records in compressed records (perf record -z). Each data file has one zstd stream;
 * each compressed record has the next part of it. A record in the stream may begin in one part and
 * end in another, so the whole stream is expanded before its records are read.
 */

/*
 * From n compressed bytes, at most EXPAND_MIN + n * EXPAND_RATIO_MAX bytes are expanded. Records
 * shrink to about a tenth, but zstd can shrink zeros to a thirty-thousandth, so that a small file
 * could fill the disk.
 */
#define EXPAND_MIN       (UINT64_C(16) << 20)
#define EXPAND_RATIO_MAX 256

/* Where a part of the expanded bytes came from. */
struct expand_part {
	uint64_t start;       /* in the expanded bytes */
	uint64_t file_offset; /* of the compressed record */
};

/* All zero: nothing was compressed so far. */
struct expand {
	void *stream; /* of zstd; NULL: nothing was compressed so far */
	uint8_t *buffer;
	uint64_t n_in;
	struct spill out;
	VEC(struct expand_part) parts;
};

/* The most bytes that are read into memory at once: of a section, or what follows a record. */
#define PERFSTREAM_BYTES_MAX (UINT64_C(64) << 20)

/* One of the files that a trace is in. */
struct perfstream_file {
	int fd;                /* borrowed; that of a temporary file, if it came out of a pipe */
	struct pieces *pieces; /* of the file, which it is checked by; borrowed; or NULL */
	uint64_t offset;       /* where in it the file begins */
	uint64_t size;
	const char *name; /* borrowed: what messages call it */
};

struct perfstream {
	struct perfstream_file file; /* the one that is being read */
	struct reading *reading;     /* borrowed; or NULL */
	char **reterr_message;       /* where messages go */

	/* The records that are being read: the file's, or expanded ones. */
	struct filepart part;
	struct window window;
	uint64_t at;   /* of the record, in those */
	uint64_t next; /* of the one behind it and the bytes that follow it */
	uint64_t end;
	bool expanded;
	struct expand expand; /* of the file */

	bool attr_records;   /* the pipe form: attrs are records */
	bool is_endless;     /* the header does not say how long the file should be */
	uint64_t dir_format; /* as the feature states; not 0: the trace is in several files */
	struct perfattrs attrs;
	struct record_auxtrace_info info;
	char *filter;             /* which the info has; owned */
	uint64_t info_offset;     /* in the file; 0: there was no AUXTRACE_INFO so far */
	bool has_samples;         /* there are samples that carry PT */
	bool has_unknown_samples; /* of tracepoints that the file does not describe, or others */
	bool has_switches;        /* there are switch records */
	struct map guest_ids;     /* of the events of guests, by ID_INDEX → the guest's process */
	struct tracepoint tracepoints[_TRACEPOINT_KINDS];
	VEC(struct auxpiece) pieces;
	struct table records; /* of struct trace_record */
	struct trace *trace;  /* owned; NULL once it is finished */
};

/* Set the message "NAME: …". Return: @r. */
#define perfstream_complain(s, r, format, ...) \
	message_set((s)->reterr_message, (r), "%s: " format, (s)->file.name, ##__VA_ARGS__)

/* Begin on a trace, whose first file is @file. Return: 0 or -ENOMEM, with a message. */
_must_check_ int perfstream_init(struct perfstream *s, const struct perfstream_file *file,
				 struct reading *reading, char **reterr_message);
void perfstream_deinit(struct perfstream *s);

/* Go on with another file of the trace, which has records and nothing else. */
void perfstream_next_file(struct perfstream *s, const struct perfstream_file *file);

/* Read bytes of the file. Return: 0; or a negative errno of perfdata_parse(), with a message. */
_must_check_ int perfstream_bytes(struct perfstream *s, uint64_t offset, void *ret_bytes,
				  size_t size);

/*
 * Read all records in @size bytes of the file, and those that are compressed in them. If the file
 * ends inside of a record, the trace's truncated_at is set.
 *
 * Return: 0; or a negative errno of perfdata_parse(), with a message.
 */
_must_check_ int perfstream_read(struct perfstream *s, uint64_t offset, uint64_t size);

/*
 * Read the feature with this number; most features are ignored. @body lies @offset bytes from the
 * start of the file. Return: as above.
 */
_must_check_ int perfstream_feature(struct perfstream *s, uint64_t feature, struct cursor body,
				    uint64_t offset);

/*
 * Make the trace of all that was read. The caller owns the trace; @s can only be deinitialized
 * then.
 *
 * Return: 0; or a negative errno of perfdata_parse(), with a message.
 */
_must_check_ int perfstream_finish(struct perfstream *s, struct trace **ret_trace);
