/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/judge_record.h"

#include <stddef.h>

#include "base/base.h"

const char *record_type_refusal(uint16_t type)
{
	switch (type) {
	case 0 ... 1:
		return "a data access has no place in an instruction-only trace";
	case 2 ... 9:
	case 32 ... 46:
		return "a software prefetch has no place in an instruction-only trace";
	case 17:
		return "an instruction bundle belongs to online traces";
	case 18 ... 21:
		return "a cache flush has no place in an instruction-only trace";
	case 27:
		return "a hardware prefetch is for simulators";
	case 29:
		return "a no-fetch instruction is written only with data records";
	case 30:
		return "a maybe-fetch instruction belongs to online traces";
	default:
		return "no such record type";
	}
}

const char *record_marker_refusal(uint16_t kind)
{
	static const char raw[] = "it belongs to raw traces";
	static const char header[] = "it belongs to the header, and stands there once";
	static const char memory[] = "it belongs to data addresses, in an instruction-only trace";
	static const char zip[] = "it belongs to the chunks of zip files";
	static const char syscall_trace[] = "kernel code has no place in a user-only trace";
	static const char core[] = "it belongs to core-sharded traces";
	static const char *const refusals[MARKER_USER] = {
		[8] = raw,
		[9] = header,
		[10] = header,
		[11] = "it belongs to filtered traces",
		[12] = header,
		[15] = memory,
		[16] = memory,
		[17] = memory,
		[18] = header,
		[19] = raw,
		[20] = header,
		[21] = zip,
		[22] = zip,
		[23] = "filter end points are not for this writer",
		[25] = "the file type says that system call numbers are unknown (no 0x400)",
		[26] = "the file type has no blocking information (no 0x800)",
		[27] = syscall_trace,
		[28] = syscall_trace,
		[32] = core,
		[33] = core,
		[34] = core,
		[35] = core,
		[36] = "x86 has no vector length",
		[42] = raw,
		[43] = "hardware events belong to whole-system traces",
		[44] = "hardware events belong to whole-system traces",
		[45] = raw,
		[46] = memory,
	};

	if (kind >= 47 && kind < MARKER_USER)
		return "its number is reserved";
	return kind < MARKER_USER ? refusals[kind] : NULL;
}
