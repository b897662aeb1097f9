/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace
 *
 * What a recording has: the PT of each CPU (or thread), the sideband records in the order of time,
 * and facts about the machine and the recorder. PT stays where it was recorded, in files, and is
 * read from there. The sideband records' bytes are copied when the trace is read, to a table that
 * lies in a temporary file unless it is small.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/trace/bpfprog.h"
#include "decoder/util/table.h"
#include "ptd/record.h"
#include "util/fileparts.h"
#include "util/map.h"
#include "util/perf/tsc.h"
#include "util/vec.h"

/*
 * The restriction of PT to some code: the string that `perf record --filter` leaves in the record
 * AUXTRACE_INFO, such as "filter 0x1139/0x2a@/usr/bin/x". Each part of it is a range of a file, or
 * a range of the kernel's addresses if it names no file.
 */

/* A CPU has no more ranges; a string with more parts is refused. */
#define ADDRFILTER_PARTS_MAX 4

struct addrfilter {
	bool stops;       /* PT stops when this code is reached; else only this code is traced */
	uint64_t address; /* an offset in the file, or an address of the kernel */
	uint64_t size;    /* not 0 */
	const char *path; /* in the text, without a NUL; NULL: the range is of kernel addresses */
	size_t path_size;
};

struct addrfilters {
	struct addrfilter parts[ADDRFILTER_PARTS_MAX];
	size_t n;
};

/*
 * Parse the filter of @size bytes at @text, which must outlive @ret_filters.
 *
 * Return: 0; -EBADMSG if it is no filter that perf writes for PT.
 */
_must_check_ int addrfilter_read(const char *text, size_t size, struct addrfilters *ret_filters);

/*
 * Find the addresses of the code of @filter in a mapping of @size bytes at @start, whose first byte
 * is at @offset of the file.
 *
 * Return: whether the mapping has such code; then it lies from @ret_first to @ret_last, inclusive.
 */
bool addrfilter_place(const struct addrfilter *filter, uint64_t start, uint64_t size,
		      uint64_t offset, uint64_t *ret_first, uint64_t *ret_last);

#define TRACE_NONE UINT32_MAX /* the cpu, pid or tid of a record that states none */

enum {
	/* Samples of tracepoints that are records, too. The kernel has no such types. The thread in
	 * the trailer is the one that they are about. */
	TRACE_RECORD_SIGNAL = 0x10000, /* of signal_deliver: the payload is a struct trace_signal */
	TRACE_RECORD_SYSCALL,          /* of sys_enter: a struct trace_syscall */
};

struct trace_signal {
	uint32_t signal;
	int32_t code;
	uint64_t handler; /* 0: the default action is taken; 1: the signal is ignored */
};

struct trace_syscall {
	uint64_t number;
};

/*
 * A sideband record: any record that the host's kernel makes, but few samples; and
 * PERFABI_HEADER_BUILD_ID records at time 0, one for each entry of the file's table of build-ids.
 *
 * If there are no switch records, samples of sched_switch are sideband records, too. The thread in
 * the trailer of such a sample leaves the CPU; its payload is the tid, an int32_t, of the thread
 * that comes to the CPU.
 */
struct trace_record {
	uint64_t time; /* ns on the recorder's clock; 0: before all others (perf synthesized it) */
	uint32_t type; /* PERF_RECORD_* or TRACE_RECORD_* */
	uint16_t misc;
	uint32_t cpu; /* from the trailer, like pid and tid */
	uint32_t pid;
	uint32_t tid;
	uint64_t file_offset; /* of its header */
	union {
		const uint8_t *payload; /* the bytes between header and trailer */
		uint64_t payload_at;    /* while records are read: where they are in the table */
	};
	size_t payload_size;
};

/* Return: the payload of @record, to be read. */
static inline struct cursor trace_record_body(const struct trace_record *record)
{
	return cursor_from(record->payload, record->payload_size);
}

/* PT bytes without a hole. */
struct trace_span {
	struct fileparts pt;
	uint64_t offset;      /* of the first byte in all that the buffer ever had */
	uint64_t file_offset; /* of the first byte */
};

/* Data that the recorder states to be lost. */
struct trace_loss {
	enum ptd_gap_reason reason;
	uint64_t offset; /* as in struct trace_span; only given of the first losses: n_losses_at */
	uint64_t time;   /* of the record that states it, in ns; 0: it has none */
};

/* The PT of one AUX buffer: of a CPU, or of a thread in per-thread mode. */
struct trace_queue {
	uint32_t idx; /* perf's number for the buffer */
	uint32_t cpu; /* TRACE_NONE in per-thread mode */
	uint32_t tid; /* TRACE_NONE in per-cpu mode */
	/* In ns. The records do not state who ran before it; 0: they go back as far as the PT. */
	uint64_t sideband_since;
	struct trace_span *spans; /* in full-trace mode, by offset */
	size_t n_spans;
	bool overwritten; /* the records state that bytes before each span were overwritten */

	/* The first n_losses_at state an offset, and are ordered by it; the others by time. */
	struct trace_loss *losses;
	size_t n_losses;
	size_t n_losses_at;
};

struct trace_facts {
	/* A PT stream and nothing else: no record says who ran, or what was mapped. */
	bool is_bare;
	struct tsc_conv clock;
	bool snapshot_mode; /* AUX was overwritten or sampled: each span begins anywhere */
	/* Switch records have rings of their own, so that LOST records are not about them; so it is
	 * in snapshots of ptd. */
	bool switches_apart;
	/*
	 * The kernel's code was copied at the end of the recording, not at its beginning; so it is
	 * in snapshots of ptd.
	 */
	bool kcore_is_last;
	/* Records of some processes may be missing that are older than this, though those of others
	 * are there; 0: no. */
	uint64_t dropped_until;
	bool has_unread; /* likewise, of processes whose names are known */
	bool has_tsc;    /* as attr.config states, like the next ones */
	bool has_mtc;
	bool has_cyc;
	bool has_events; /* event trace */
	bool return_compression;
	uint8_t mtc_freq;    /* MTC period exponent; what libipt calls mtc_freq */
	uint8_t nom_freq;    /* max non-turbo ratio; 0: unknown */
	uint32_t tsc_ctc_n;  /* CPUID 0x15 EBX */
	uint32_t tsc_ctc_d;  /* CPUID 0x15 EAX */
	uint16_t cpu_family; /* 0: not known, or not Intel */
	uint8_t cpu_model;
	uint8_t cpu_stepping;
	struct addrfilters filters; /* only this code was traced; none: all code was */
	int64_t realtime_offset_ns;
	int64_t monotonic_offset_ns; /* the recorder's clock minus CLOCK_MONOTONIC */
	uint64_t snapshot_taken;     /* when ptd took the snapshot, in ns; 0: not known */
	/*
	 * In a snapshot of ptd whose rings were overwritten: how much of the PT that was asked for
	 * is missing, and since when it is complete, in ns. 0: none is missing.
	 */
	uint64_t bytes_overwritten;
	uint64_t complete_since;
	/* In a snapshot of ptd: until when the PT of all CPUs is there, in ns; 0: not known. */
	uint64_t complete_until;
	/* The snapshot of ptd is about some processes only, whose pids are in @scope. */
	bool has_scope;
	struct map scope;
};

/* Parts of a file that may be of no use. */
enum trace_complaint {
	TRACE_COMPLAINT_PROGRAMS, /* code of BPF programs */
	TRACE_COMPLAINT_SWITCHES, /* samples of tracepoints */
	TRACE_COMPLAINT_FILTER,   /* the address filter */
	TRACE_COMPLAINT_CPU,      /* the model of the CPU */
	TRACE_COMPLAINT_GUESTS,   /* records of guests */
	TRACE_COMPLAINT_CLOCK,    /* the times of all records */
	TRACE_COMPLAINT_END,      /* the recording was not finished */
	TRACE_COMPLAINT_SUMS, /* the files of the snapshot differ from those that were written */
	_TRACE_COMPLAINTS,
};

struct trace {
	struct spills *spills; /* what is written to temporary files is one of these; borrowed */
	struct trace_facts facts;
	struct trace_queue *queues; /* by cpu, then tid */
	size_t n_queues;
	struct trace_record *records; /* by time; equal times in file order */
	size_t n_records;
	struct table record_table;    /* holds the records */
	struct table payloads;        /* holds their bytes */
	size_t n_skipped;             /* records too short for their trailer */
	size_t n_unknown;             /* records of an unknown type */
	size_t n_guest;               /* records of guests, which are left out */
	size_t n_switch_samples;      /* records that are samples of sched_switch */
	VEC(struct bpfprog) programs; /* BPF programs whose code the recorder kept */

	/* Texts for the user, which are constant or in @bytes: why a part of the file is not used;
	 * NULL: it is used. */
	const char *complaints[_TRACE_COMPLAINTS];

	/*
	 * Where a file that was cut ends: its size, or the offset of the record in which it ends.
	 * 0: the file is whole.
	 */
	uint64_t truncated_at;

	VEC(int) fds;           /* which are open as long as the trace is */
	VEC(uint8_t *) bytes;   /* parts of files, which the programs and filters point into */
	struct filepart *parts; /* of all spans */
};

struct trace *trace_free(struct trace *trace);

/* A walk over all records evicts them from memory each time after this number of them. */
#define TRACE_EVICT_RECORDS 4096

/* Give the memory of the records back to the system; they are read again when they are needed. */
void trace_evict(const struct trace *trace);

DEFINE_CLEANUP(struct trace *, trace_free);
