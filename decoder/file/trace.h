/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace
 *
 * What a reader takes out of a perf.data file or directory: the PT bytes of each CPU (or thread),
 * the sideband records in the order of their time, and what the recorder says of its machine. All
 * bytes it points to are the trace's: mapped files, or buffers it made.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/file/clock.h"
#include "decoder/util/mapfile.h"

#define TRACE_NONE UINT32_MAX /* a cpu, pid or tid that a record does not state */

/*
 * One sideband record: any that the kernel makes, but samples; and PERFABI_HEADER_BUILD_ID, at time
 * 0, whose payload is that of a perf.data's build-id table.
 */
struct trace_record {
	uint64_t time; /* ns on the recorder's clock; 0: before everything (perf's synthesized) */
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint32_t cpu; /* of the trailer, like pid and tid */
	uint32_t pid;
	uint32_t tid;
	uint64_t file_offset;   /* of its header */
	const uint8_t *payload; /* between header and trailer */
	size_t payload_size;
};

/* A run of PT bytes without a hole. */
struct trace_span {
	const uint8_t *bytes;
	size_t size;
	uint64_t offset;      /* of its first byte in the endless AUX stream */
	uint64_t reference;   /* a TSC near its end; 0 if not stated */
	uint64_t file_offset; /* of its first byte */
	uint8_t *joined;      /* the bytes, if they were put together; NULL: they are the file's */
};

/* One AUX buffer: a CPU's, or in per-thread mode a thread's. */
struct trace_queue {
	uint32_t idx;
	uint32_t cpu; /* TRACE_NONE in per-thread mode */
	uint32_t tid; /* TRACE_NONE in per-cpu mode */
	uint64_t
	    sideband_since; /* ns: nothing says who ran before; 0: the records go back as far */
	struct trace_span *spans;
	size_t n_spans;
};

struct trace_facts {
	struct clock_conv clock;
	bool snapshot_mode; /* AUX was overwritten: each span starts anywhere */
	bool has_tsc;       /* of attr.config */
	bool has_mtc;
	bool has_cyc;
	bool return_compression;
	uint8_t mtc_freq;    /* MTC period exponent; what libipt calls mtc_freq */
	uint8_t nom_freq;    /* max non-turbo ratio; 0 unknown */
	uint32_t tsc_ctc_n;  /* CPUID 0x15 EBX */
	uint32_t tsc_ctc_d;  /* CPUID 0x15 EAX */
	uint16_t cpu_family; /* 0: not stated, or not Intel */
	uint8_t cpu_model;
	uint8_t cpu_stepping;
	int64_t realtime_offset_ns;
	int64_t monotonic_offset_ns; /* the recorder's clock minus CLOCK_MONOTONIC */
};

struct trace {
	struct trace_facts facts;
	struct trace_queue *queues; /* by cpu, then tid */
	size_t n_queues;
	struct trace_record *records; /* by time; equal times in file order */
	size_t n_records;
	size_t n_skipped; /* records too short for their trailer */

	/* 0: the file is whole. Else where it ends: its size, or the record that it ends in. */
	uint64_t truncated_at;

	struct mapfile file;
};

/*
 * Read the perf.data file or directory at @path.
 *
 * In a directory with a manifest (a snapshot of ptd) the hashes of SHA256SUMS are checked first,
 * unless @force.
 *
 * Return: 0; or negative errno and @reterr_message, a text for the user that names the file, the
 *         offset and what was expected, which the caller frees.
 */
_must_check_ int trace_open(const char *path, bool force, struct trace **ret_trace,
			    char **reterr_message);
struct trace *trace_free(struct trace *trace);

DEFINE_CLEANUP(struct trace *, trace_free);
