/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge_record.h"

#include <stddef.h>

#include "base/base.h"
#include "decoder/drmemtrace/tracerecord.h"

static const char *data_refusal(uint16_t type)
{
	switch (type) {
	case 0 ... 1:
		return "a data access has no place in an instruction-only trace";
	case 18 ... 21:
		return "a cache flush has no place in an instruction-only trace";
	case 29:
		return "a no-fetch instruction is written only with data records";
	default:
		return "a software prefetch has no place in an instruction-only trace";
	}
}

const char *record_type_refusal(uint16_t type, uint64_t file_type)
{
	switch (type) {
	case 0 ... 9:
	case 18 ... 21:
	case 29:
	case 32 ... 46:
		return file_type & FILE_TYPE_INSNS_ONLY ? data_refusal(type) : NULL;
	case 17:
		return "an instruction bundle belongs to online traces";
	case 27:
		return "a hardware prefetch is for simulators";
	case 30:
		return "a maybe-fetch instruction belongs to online traces";
	default:
		return "no such record type";
	}
}

/* Markers that files have only if one of these bits is in their type. */
static const struct {
	uint16_t kind;
	uint64_t file_type;
	const char *refusal;
} conditional[] = {
	{ 11, FILE_TYPE_FILTERED | FILE_TYPE_I_FILTERED, "it belongs to filtered traces" },
	{ MARKER_SYSCALL, FILE_TYPE_SYSCALLS,
	  "the file type says that system call numbers are unknown (no 0x400)" },
	{ MARKER_MAYBE_BLOCKING, FILE_TYPE_BLOCKING,
	  "the file type has no blocking information (no 0x800)" },
	{ MARKER_SYSCALL_START, FILE_TYPE_KERNEL | FILE_TYPE_KERNEL_DATA | FILE_TYPE_WHOLE,
	  "kernel code has no place in a user-only trace" },
	{ MARKER_SYSCALL_END, FILE_TYPE_KERNEL | FILE_TYPE_KERNEL_DATA | FILE_TYPE_WHOLE,
	  "kernel code has no place in a user-only trace" },
	{ 32, FILE_TYPE_CORES, "it belongs to core-sharded traces" },
	{ 33, FILE_TYPE_CORES, "it belongs to core-sharded traces" },
	{ 34, FILE_TYPE_CORES, "it belongs to core-sharded traces" },
	{ 35, FILE_TYPE_CORES, "it belongs to core-sharded traces" },
	{ MARKER_HARDWARE_EVENT, FILE_TYPE_WHOLE, "hardware events belong to whole-system traces" },
	{ MARKER_HARDWARE_RETURN, FILE_TYPE_WHOLE,
	  "hardware events belong to whole-system traces" },
};

const char *record_marker_refusal(uint16_t kind, uint64_t file_type, bool is_zip)
{
	static const char raw[] = "it belongs to raw traces";
	static const char header[] = "it belongs to the header, and stands there once";
	static const char memory[] = "it belongs to data addresses, in an instruction-only trace";
	static const char *const refusals[MARKER_USER] = {
		[8] = raw,
		[9] = header,
		[10] = header,
		[12] = header,
		[18] = header,
		[19] = raw,
		[20] = header,
		[23] = "filter end points are not for this writer",
		[36] = "x86 has no vector length",
		[42] = raw,
		[45] = raw,
	};

	for (size_t i = 0; i < ARRAY_LEN(conditional); i++)
		if (conditional[i].kind == kind && !(file_type & conditional[i].file_type))
			return conditional[i].refusal;
	if ((kind >= 15 && kind <= 17) || kind == 46)
		return file_type & FILE_TYPE_INSNS_ONLY ? memory : NULL;
	if ((kind == MARKER_CHUNK_FOOTER || kind == MARKER_ORDINAL) && !is_zip)
		return "it belongs to the chunks of zip files";
	if (kind >= 47 && kind < MARKER_USER)
		return "its number is reserved";
	return kind < MARKER_USER ? refusals[kind] : NULL;
}
