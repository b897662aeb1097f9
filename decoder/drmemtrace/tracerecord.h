/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace record
 *
 * The records in drmemtrace files, as far as a reader must know them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RECORD_SIZE 12

enum record_type {
	RECORD_READ = 0,
	RECORD_WRITE = 1,
	RECORD_INSN = 10,
	RECORD_JUMP = 11,
	RECORD_JUMP_INDIRECT = 12,
	RECORD_JUMP_COND = 13,
	RECORD_CALL = 14,
	RECORD_CALL_INDIRECT = 15,
	RECORD_RETURN = 16,
	RECORD_THREAD = 22,
	RECORD_EXIT = 23,
	RECORD_PID = 24,
	RECORD_HEADER = 25,
	RECORD_FOOTER = 26,
	RECORD_MARKER = 28,
	RECORD_NO_FETCH = 29,
	RECORD_SYSENTER = 31,
	RECORD_ENCODING = 47,
	RECORD_TAKEN = 48,
	RECORD_UNTAKEN = 49,
};

enum marker_kind {
	MARKER_SIGNAL = 0,
	MARKER_TRANSFER = 1,
	MARKER_TIME = 2,
	MARKER_CPU = 3,
	MARKER_FUNC_ID = 4,
	MARKER_FUNC_RETURN_ADDRESS = 5,
	MARKER_FUNC_ARGUMENT = 6,
	MARKER_FUNC_VALUE = 7,
	MARKER_FILE_TYPE = 9,
	MARKER_CACHE_LINE = 10,
	MARKER_VERSION = 12,
	MARKER_WINDOW = 14,
	MARKER_PAGE_SIZE = 18,
	MARKER_CHUNK_INSNS = 20,
	MARKER_CHUNK_FOOTER = 21,
	MARKER_ORDINAL = 22,
	MARKER_SYSCALL = 25,
	MARKER_MAYBE_BLOCKING = 26,
	MARKER_SYSCALL_START = 27,
	MARKER_SYSCALL_END = 28,
	MARKER_TARGET = 29,
	MARKER_SYSCALL_FAILED = 30,
	MARKER_THREAD_SWITCH = 31,
	MARKER_UNSCHEDULE = 37,
	MARKER_SIGNAL_NUMBER = 40,
	MARKER_HARDWARE_EVENT = 43,
	MARKER_HARDWARE_RETURN = 44,
	MARKER_USER = 101, /* this and all above */
};

struct record {
	uint16_t type;
	uint16_t size; /* of markers: the kind */
	uint64_t addr;
};

/* Files are little-endian, like all machines that this runs on. */
static inline struct record record_read(const uint8_t *bytes)
{
	struct record rec;

	memcpy(&rec.type, bytes, 2);
	memcpy(&rec.size, bytes + 2, 2);
	memcpy(&rec.addr, bytes + 4, 8);
	return rec;
}

static inline bool record_is_marker(const struct record *rec, enum marker_kind kind)
{
	return rec->type == RECORD_MARKER && rec->size == kind;
}

/* Return: whether it stands for an instruction. Type 13, which must not occur, does, too. */
static inline bool record_is_insn(const struct record *rec)
{
	return (rec->type >= RECORD_INSN && rec->type <= RECORD_RETURN) ||
	       rec->type == RECORD_SYSENTER || rec->type == RECORD_TAKEN ||
	       rec->type == RECORD_UNTAKEN;
}

/* Bits of the file type, the value of MARKER_FILE_TYPE. */
enum file_type {
	FILE_TYPE_FILTERED = 0x1,
	FILE_TYPE_INSNS_ONLY = 0x4,
	FILE_TYPE_X86_64 = 0x40,
	FILE_TYPE_I_FILTERED = 0x80,
	FILE_TYPE_D_FILTERED = 0x100,
	FILE_TYPE_ENCODINGS = 0x200,
	FILE_TYPE_SYSCALLS = 0x400,     /* their numbers */
	FILE_TYPE_BLOCKING = 0x800,     /* which of them may have blocked */
	FILE_TYPE_KERNEL_DATA = 0x1000, /* the kernel's part of system calls, with data addresses */
	FILE_TYPE_KERNEL = 0x8000,      /* the same without */
	FILE_TYPE_CORES = 0x10000,      /* a file for each core */
	FILE_TYPE_WHOLE = 0x40000,      /* whole system */
};

/* Times are counted from 1601: the µs from there to 1970. */
#define TRACE_TIME_UNIX UINT64_C(11644473600000000)
