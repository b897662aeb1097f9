/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf ABI
 *
 * What <linux/perf_event.h> does not say about perf.data: the file header, the features, and the
 * types of the records that perf itself adds (from 64 on; codec.h lays them out). All integers are
 * little endian.
 *
 * Source: perf.data-file-format.txt and the kernel's perf tool.
 */

#include <linux/perf_event.h>
#include <stdint.h>

#define PERFABI_MAGIC         UINT64_C(0x32454c4946524550) /* "PERFILE2" */
#define PERFABI_MAGIC_SWAPPED UINT64_C(0x50455246494c4532)
#define PERFABI_PIPE_HEADER   16 /* header.size of the pipe form */

/* The trailer of every record we write: pid, tid, time, cpu, identifier; 32 bytes. */
#define PERFABI_SAMPLE_TYPE                                                                 \
	((uint64_t)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
		    PERF_SAMPLE_IDENTIFIER))

struct perfabi_section {
	uint64_t offset, size;
};

struct perfabi_header {
	uint64_t magic;
	uint64_t size;
	uint64_t attr_size; /* of one attr and its ids section */
	struct perfabi_section attrs;
	struct perfabi_section data;
	struct perfabi_section event_types;
	uint64_t features[4];
};

enum perfabi_feature {
	PERFABI_FEATURE_TRACING_DATA = 1,
	PERFABI_FEATURE_BUILD_ID = 2,
	PERFABI_FEATURE_HOSTNAME = 3,
	PERFABI_FEATURE_OSRELEASE = 4,
	PERFABI_FEATURE_VERSION = 5,
	PERFABI_FEATURE_ARCH = 6,
	PERFABI_FEATURE_NRCPUS = 7,
	PERFABI_FEATURE_CPUDESC = 8,
	PERFABI_FEATURE_CPUID = 9,
	PERFABI_FEATURE_CMDLINE = 11,
	PERFABI_FEATURE_EVENT_DESC = 12,
	PERFABI_FEATURE_PMU_MAPPINGS = 16,
	PERFABI_FEATURE_AUXTRACE = 18,
	PERFABI_FEATURE_SAMPLE_TIME = 21,
	PERFABI_FEATURE_DIR_FORMAT = 24,
	PERFABI_FEATURE_BPF_PROG_INFO = 25,
	PERFABI_FEATURE_COMPRESSED = 27,
};

enum perfabi_type {
	PERFABI_HEADER_ATTR = 64,
	PERFABI_HEADER_TRACING_DATA =
	    66, /* followed by its u32 of bytes, which header.size does not count */
	PERFABI_HEADER_BUILD_ID = 67,
	PERFABI_FINISHED_ROUND = 68,
	PERFABI_ID_INDEX = 69,
	PERFABI_AUXTRACE_INFO = 70,
	PERFABI_AUXTRACE = 71,
	PERFABI_AUXTRACE_ERROR = 72,
	PERFABI_THREAD_MAP = 73,
	PERFABI_CPU_MAP = 74,
	PERFABI_EVENT_UPDATE = 78,
	PERFABI_TIME_CONV = 79,
	PERFABI_HEADER_FEATURE = 80,
	PERFABI_COMPRESSED = 81,
	PERFABI_FINISHED_INIT = 82,
	PERFABI_COMPRESSED2 = 83, /* u64 size, bytes, padding */
	_PERFABI_TYPE_END,
};

#define PERFABI_AUXTRACE_INTEL_PT 1u

#define PERFABI_DIR_FORMAT_THREADS 1u /* records also in data.0, data.1, … */

/* AUXTRACE_INFO of intel_pt: slots of priv[]. */
enum perfabi_pt_slot {
	PERFABI_PT_PMU_TYPE,
	PERFABI_PT_TIME_SHIFT,
	PERFABI_PT_TIME_MULT,
	PERFABI_PT_TIME_ZERO,
	PERFABI_PT_CAP_USER_TIME_ZERO,
	PERFABI_PT_TSC_BIT,
	PERFABI_PT_NORETCOMP_BIT,
	PERFABI_PT_HAVE_SCHED_SWITCH,
	PERFABI_PT_SNAPSHOT_MODE,
	PERFABI_PT_PER_CPU_MMAPS,
	PERFABI_PT_MTC_BIT,
	PERFABI_PT_MTC_FREQ_BITS,
	PERFABI_PT_TSC_CTC_N,
	PERFABI_PT_TSC_CTC_D,
	PERFABI_PT_CYC_BIT,
	PERFABI_PT_MAX_NONTURBO_RATIO,
	PERFABI_PT_FILTER_STR_LEN,
	_PERFABI_PT_SLOTS_FIXED,
};

/* Of attr.config, where no slot says it: event trace. */
#define PERFABI_PT_EVENT_BIT (UINT64_C(1) << 31)
