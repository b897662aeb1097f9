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
#include "decoder/trace/addrfilter.h"
#include "decoder/trace/bpfprog.h"
#include "ptd/record.h"
#include "record/tsc.h"
#include "util/map.h"
#include "util/mapfile.h"
#include "util/table.h"
#include "util/vec.h"

#define TRACE_NONE UINT32_MAX /* a cpu, pid or tid that a record does not state */

/*
 * One sideband record: any that the kernel makes, but samples; and PERFABI_HEADER_BUILD_ID, at time
 * 0, whose payload is that of a perf.data's build-id table.
 *
 * Of samples those of sched_switch, where there are no switch records: their payload is the tid, an
 * int32_t, of the thread that comes to the CPU; the trailer's thread leaves it.
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

static inline struct cursor trace_record_body(const struct trace_record *record)
{
	return cursor_from(record->payload, record->payload_size);
}

/* A run of PT bytes without a hole. */
struct trace_span {
	const uint8_t *bytes;
	size_t size;
	uint64_t offset;      /* of its first byte in the endless AUX stream */
	uint64_t reference;   /* a TSC near its end; 0 if not stated */
	uint64_t file_offset; /* of its first byte */
};

/* What the recorder says that it lost. */
struct trace_loss {
	enum ptd_gap_reason reason;
	uint64_t offset; /* in the endless AUX stream; see n_losses_at */
	uint64_t time;   /* of the record that says so, in ns; 0: it has none */
};

/* One AUX buffer: a CPU's, or in per-thread mode a thread's. */
struct trace_queue {
	uint32_t idx;
	uint32_t cpu; /* TRACE_NONE in per-thread mode */
	uint32_t tid; /* TRACE_NONE in per-cpu mode */
	/* In ns: nothing says who ran before; 0: the records go back as far. */
	uint64_t sideband_since;
	struct trace_span *spans; /* in full-trace mode by offset */
	size_t n_spans;
	bool overwritten; /* the records say that older bytes were, before each span */

	/* First those whose offset says where they are, by it; then those by their time. */
	struct trace_loss *losses;
	size_t n_losses;
	size_t n_losses_at;
};

struct trace_facts {
	/* A PT stream and nothing else: no record says who ran, or what was mapped. */
	bool is_bare;
	struct tsc_conv clock;
	bool snapshot_mode; /* AUX was overwritten, or sampled: each span starts anywhere */
	/* LOST is not about switches: they have rings of their own (snapshots of ptd). */
	bool switches_apart;
	/* The kernel's code is that at the end, not at the beginning (the same). */
	bool kcore_is_last;
	bool has_tsc; /* of attr.config */
	bool has_mtc;
	bool has_cyc;
	bool has_events; /* event trace */
	bool return_compression;
	uint8_t mtc_freq;    /* MTC period exponent; what libipt calls mtc_freq */
	uint8_t nom_freq;    /* max non-turbo ratio; 0 unknown */
	uint32_t tsc_ctc_n;  /* CPUID 0x15 EBX */
	uint32_t tsc_ctc_d;  /* CPUID 0x15 EAX */
	uint16_t cpu_family; /* 0: not stated, or not Intel */
	uint8_t cpu_model;
	uint8_t cpu_stepping;
	struct addrfilters filters; /* the only code that PT is of; none: of all */
	int64_t realtime_offset_ns;
	int64_t monotonic_offset_ns; /* the recorder's clock minus CLOCK_MONOTONIC */
	/* Of a snapshot of ptd whose rings were overwritten: how much of what was asked for is
	 * gone, and since when all of it is there, in ns. 0: nothing is gone. */
	uint64_t bytes_overwritten;
	uint64_t complete_since;
	/* Only what these processes executed was asked for (snapshots of ptd of one process). */
	bool has_scope;
	struct map scope; /* their pids; the trace's */
};

/* What of a file may not be of use. */
enum trace_complaint {
	TRACE_COMPLAINT_PROGRAMS, /* code of BPF programs */
	TRACE_COMPLAINT_SWITCHES, /* samples of tracepoints */
	TRACE_COMPLAINT_FILTER,   /* its address filter */
	_TRACE_COMPLAINTS,
};

struct trace {
	struct trace_facts facts;
	struct trace_queue *queues; /* by cpu, then tid */
	size_t n_queues;
	struct trace_record *records; /* by time; equal times in file order */
	size_t n_records;
	struct table record_table;    /* what they are in */
	size_t n_skipped;             /* records too short for their trailer */
	size_t n_unknown;             /* records of a type that is not known */
	size_t n_switch_samples;      /* of the records */
	VEC(struct bpfprog) programs; /* whose functions' code the recorder kept */

	/* For the user: what of the file is not used, and why; NULL where all is. */
	const char *complaints[_TRACE_COMPLAINTS];

	/* 0: the file is whole. Else where it ends: its size, or the record that it ends in. */
	uint64_t truncated_at;

	VEC(struct mapfile) files; /* whose bytes all these are */
};

struct trace *trace_free(struct trace *trace);

/* Who walks over all records evicts the trace from memory each time after so many of them. */
#define TRACE_EVICT_RECORDS 4096

/* Give the memory of the whole trace back to the system; it is read again when it is needed. */
void trace_evict_all(const struct trace *trace);

/* The same for the @size bytes at @bytes. */
void trace_evict(const struct trace *trace, const uint8_t *bytes, size_t size);

DEFINE_CLEANUP(struct trace *, trace_free);
