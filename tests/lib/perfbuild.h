/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perfbuild
 *
 * Writes small perf.data files into memory for the tests of their reader. The records are written
 * by util/perf/codec.h; those that no recorder would write, by perfbuild_record().
 *
 *	0	header
 *	104	ids of the two attrs: 1; 2
 *	120	attr 0: Intel PT (type 6); its ids section
 *	248	attr 1: dummy; its ids section
 *	376	data section: AUXTRACE_INFO, then what the caller adds
 *		feature table, CPUID, tracing data (see perfsched.h), BPF programs (see perfbpf.h)
 *
 * In the pipe form the attrs and the feature are records.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/perf/codec.h"
#include "util/perf/perfabi.h"

#define PERFBUILD_IDS    104
#define PERFBUILD_ATTR   120
#define PERFBUILD_ATTR1  248
#define PERFBUILD_DATA   376 /* of the AUXTRACE_INFO */
#define PERFBUILD_SLOTS  392
#define PERFBUILD_FIRST  528 /* of the first record that the caller adds */
#define PERFBUILD_CONFIG 0x300e601

/* What of the config says which packets tell the time. */
#define PERFBUILD_CYC_BIT        UINT64_C(0x2)
#define PERFBUILD_MTC_BIT        UINT64_C(0x200)
#define PERFBUILD_MTC_FREQ_SHIFT 14
#define PERFBUILD_MTC_FREQ_BITS  (UINT64_C(0xf) << PERFBUILD_MTC_FREQ_SHIFT)

#define PERFBUILD_SHIFT 31
#define PERFBUILD_MULT  581029125u
#define PERFBUILD_ZERO  UINT64_C(18444502336406842448)

struct perfbuild {
	uint8_t bytes[1 << 15];
	size_t size;
	bool pipe;
	struct trailer trailer; /* of the records that follow */

	/* The formats of tracepoints, borrowed; NULL: the file has none. */
	const void *tracing;
	size_t tracing_size;
	const void *programs; /* BPF programs, likewise */
	size_t programs_size;
};

/* Begin a file; the trailer is all zero but for the id, 2. */
void perfbuild_begin(struct perfbuild *b, bool pipe);

/* Put an address filter in AUXTRACE_INFO, right behind perfbuild_begin() of the file form. */
void perfbuild_filter(struct perfbuild *b, const char *text);

/* End the file: write the sections after the records, and fill in the header. */
void perfbuild_end(struct perfbuild *b);

/* Set the time, CPU and thread of the records that follow. */
void perfbuild_at(struct perfbuild *b, uint64_t time, uint32_t cpu, uint32_t pid, uint32_t tid);

/*
 * Add a record: payload, then the string (if not NULL) padded to 8 bytes, then, if it is the
 * kernel's, the trailer. Return: the offset of its header.
 */
size_t perfbuild_record(struct perfbuild *b, uint32_t type, uint16_t misc, const void *payload,
			size_t size, const char *string);

size_t perfbuild_comm(struct perfbuild *b, bool exec, uint32_t pid, uint32_t tid, const char *comm);
size_t perfbuild_fork(struct perfbuild *b, uint32_t pid, uint32_t ppid, uint32_t tid,
		      uint32_t ptid);
size_t perfbuild_exit(struct perfbuild *b, uint32_t pid, uint32_t tid);
size_t perfbuild_mmap2(struct perfbuild *b, uint32_t pid, uint32_t tid, uint64_t start,
		       const char *path);
size_t perfbuild_itrace(struct perfbuild *b, uint32_t pid, uint32_t tid);

/* Any MMAP or MMAP2, as @type says. */
size_t perfbuild_mapping(struct perfbuild *b, uint32_t type, const struct record_mmap2 *mmap);

/* The records about the kernel's code. */
size_t perfbuild_ksymbol(struct perfbuild *b, const struct record_ksymbol *ksymbol);
size_t perfbuild_bpf_event(struct perfbuild *b, const struct record_bpf_event *bpf);
size_t perfbuild_text_poke(struct perfbuild *b, const struct record_text_poke *poke);

/* An entry of perf's table of build-ids. */
size_t perfbuild_build_id(struct perfbuild *b, const struct buildid *id, const char *path);

/* The trailer names the task that goes (@out) or comes; @pid and @tid are the other one. */
size_t perfbuild_switch_wide(struct perfbuild *b, bool out, uint32_t pid, uint32_t tid);
size_t perfbuild_switch(struct perfbuild *b, bool out);

/* An AUXTRACE of buffer @idx, that of CPU @cpu, with @size bytes from @offset. */
size_t perfbuild_auxtrace(struct perfbuild *b, uint32_t idx, int32_t cpu, int32_t tid,
			  uint64_t offset, const void *bytes, size_t size);

/* An AUX record of the task and CPU that perfbuild_at() says; flags as of PERF_AUX_FLAG_*. */
size_t perfbuild_aux(struct perfbuild *b, uint64_t offset, uint64_t size, uint64_t flags);
size_t perfbuild_lost(struct perfbuild *b, uint64_t n);
size_t perfbuild_lost_samples(struct perfbuild *b, uint64_t n);

/* Let attr 1 take samples with PT, whose layout has all that can stand before it. */
void perfbuild_sampling(struct perfbuild *b);

/* Such a sample, with @size bytes of PT. */
size_t perfbuild_sample(struct perfbuild *b, const void *bytes, size_t size);

/*
 * Put what was added from offset @from on, up to @n bytes of it, into a COMPRESSED record (@two:
 * COMPRESSED2) and the rest behind it, as it is. @stream is a ZSTD_CStream: the next record with
 * the same one goes on with it. Return: the offset of what is left uncompressed.
 */
size_t perfbuild_compress(struct perfbuild *b, void *stream, size_t from, size_t n, bool two);

/* A whole file: one process, a thread of it, two CPUs, switches, two pieces of PT. */
void perfbuild_example(struct perfbuild *b, bool pipe);
