/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge.h"

#include <inttypes.h>

#define ID_MAX ((UINT64_C(1) << 48) - 1)

#define PAGE_SIZE 4096

/* The records a file begins with. The timestamp and cpu that follow are the body's. */
static const struct header_step {
	uint16_t type;
	uint16_t size;
	bool is_optional;
	uint64_t value; /* 0 if any will do */
	const char *name;
} header_steps[] = {
	{ RECORD_HEADER, 0, false, 0, "header (type 25)" },
	{ RECORD_MARKER, MARKER_VERSION, false, 0, "version (marker 12)" },
	{ RECORD_MARKER, MARKER_FILE_TYPE, false, 0, "file type (marker 9)" },
	{ RECORD_THREAD, 0, false, 0, "thread (type 22)" },
	{ RECORD_PID, 0, false, 0, "pid (type 24)" },
	{ RECORD_MARKER, MARKER_CACHE_LINE, false, 64, "cache line size (marker 10)" },
	{ RECORD_MARKER, MARKER_CHUNK_INSNS, true, 0, "chunk instruction count (marker 20)" },
	{ RECORD_MARKER, MARKER_PAGE_SIZE, false, PAGE_SIZE, "page size (marker 18)" },
};

static const char *judge_file_type(uint64_t type)
{
	const uint64_t known = 0x7ffff, others = 0x8 | 0x10 | 0x20;

	if (type & ~known)
		return "has bits that mean nothing";
	if (!(type & FILE_TYPE_X86_64) || type & others)
		return "is not that of x86-64 (0x40)";
	if (!(type & FILE_TYPE_ENCODINGS))
		return "states that there are no encodings (no 0x200)";
	if (type & FILE_TYPE_INSNS_ONLY && !(type & FILE_TYPE_D_FILTERED))
		return "states instructions only (0x4) but not that data are left out (0x100), so "
		       "that the accesses of each are missed";
	if (type & FILE_TYPE_WHOLE && type & FILE_TYPE_KERNEL_DATA)
		return "has 0x40000 and 0x1000, which exclude each other";
	return NULL;
}

static void check_file_type(struct judge *judge, uint64_t type)
{
	const char *refusal = judge_file_type(type);

	if (refusal)
		judge_fault(judge, "the file type (marker 9) %#" PRIx64 " %s", type, refusal);
	judge->file->file_type = type;
	judge->flow.is_free = type & (FILE_TYPE_FILTERED | FILE_TYPE_I_FILTERED);
}

/* Version 5 has directions and targets of branches, 6 timestamps around system calls, and 7 retired
 * instructions only. */
static void check_version(struct judge *judge, const struct header_step *step, uint64_t version)
{
	if (version < MEMTRACE_VERSION_MIN || version > MEMTRACE_VERSION)
		judge_fault(judge, "the %s is %" PRIu64 ", not %u to %u", step->name, version,
			    MEMTRACE_VERSION_MIN, MEMTRACE_VERSION);
	else if (step->type == RECORD_HEADER)
		judge->version = version;
	else if (version != judge->version)
		judge_fault(judge,
			    "the %s is %" PRIu64 ", but that of the header (type 25) is %" PRIu64,
			    step->name, version, judge->version);
}

static void check_value(struct judge *judge, const struct header_step *step,
			const struct record *rec)
{
	if (step->type == RECORD_HEADER && rec->size != 0)
		judge_fault(judge, "the header's size field is 0, not %u", rec->size);
	if (step->type == RECORD_THREAD)
		judge->file->tid = rec->addr;
	if (step->type == RECORD_PID)
		judge->file->pid = rec->addr;
	if (step->type == RECORD_MARKER && step->size == MARKER_FILE_TYPE) {
		check_file_type(judge, rec->addr);
		return;
	}
	if (step->type == RECORD_HEADER ||
	    (step->type == RECORD_MARKER && step->size == MARKER_VERSION)) {
		check_version(judge, step, rec->addr);
		return;
	}
	if (step->type == RECORD_MARKER && step->size == MARKER_CHUNK_INSNS)
		judge->chunk_insns = rec->addr;

	if (step->value && rec->addr != step->value)
		judge_fault(judge,
			    "the %s is %" PRIu64 " (%#" PRIx64 "), not %" PRIu64 " (%#" PRIx64 ")",
			    step->name, rec->addr, rec->addr, step->value, step->value);
	else if (rec->addr == 0)
		judge_fault(judge, "the %s is 0, which means none", step->name);
	else if (step->type != RECORD_MARKER && rec->addr > ID_MAX)
		judge_fault(judge, "the %s is %#" PRIx64 ", not below 2^48", step->name, rec->addr);
}

static void report_missing(struct judge *judge, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		if (!header_steps[i].is_optional)
			judge_fault(judge, "the %s is missing here", header_steps[i].name);
	}
}

static bool is_step(const struct header_step *step, const struct record *rec)
{
	return step->type == rec->type && (rec->type != RECORD_MARKER || step->size == rec->size);
}

bool judge_header(struct judge *judge, const struct record *rec)
{
	unsigned i = 0;

	while (i < ARRAY_LEN(header_steps) && !is_step(&header_steps[i], rec))
		i++;
	if (i < judge->step) {
		judge_fault(judge, "the %s comes too late or twice", header_steps[i].name);
	} else {
		report_missing(judge, judge->step, i);
		judge->step = i + 1;
	}
	if (i >= ARRAY_LEN(header_steps))
		return false;
	check_value(judge, &header_steps[i], rec);
	return true;
}

void judge_header_again(struct judge *judge)
{
	judge->step = 0;
}

bool judge_in_header(const struct judge *judge)
{
	return judge->step < ARRAY_LEN(header_steps);
}

void judge_header_end(struct judge *judge)
{
	report_missing(judge, judge->step, ARRAY_LEN(header_steps));
}
