/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace record
 *
 * Those records of a drmemtrace offline trace that a trace of instructions needs, and those of data
 * accesses. A file is an array of records, little endian and packed.
 */

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct memtrace_record {
	uint16_t type; /* enum memtrace_type */
	uint16_t size; /* bytes of the instruction or of its piece; or enum memtrace_marker */
	uint64_t addr; /* pc, id, value of a marker, or up to 8 bytes of an instruction */
} __attribute__((__packed__));

static_assert(sizeof(struct memtrace_record) == 12, "a record of a 64-bit trace");

enum memtrace_type {
	MEMTRACE_READ = 0, /* of data, by the instruction before: size and address */
	MEMTRACE_WRITE = 1,
	MEMTRACE_INSN = 10,
	MEMTRACE_DIRECT_JUMP = 11,
	MEMTRACE_INDIRECT_JUMP = 12,
	MEMTRACE_DIRECT_CALL = 14,
	MEMTRACE_INDIRECT_CALL = 15,
	MEMTRACE_RETURN = 16,
	MEMTRACE_THREAD = 22,
	MEMTRACE_THREAD_EXIT = 23,
	MEMTRACE_PID = 24,
	MEMTRACE_HEADER = 25,
	MEMTRACE_FOOTER = 26,
	MEMTRACE_MARKER = 28,
	MEMTRACE_SYSENTER = 31,
	MEMTRACE_ENCODING = 47,
	MEMTRACE_TAKEN_JUMP = 48,
	MEMTRACE_UNTAKEN_JUMP = 49,
};

enum memtrace_marker {
	MEMTRACE_KERNEL_EVENT = 0, /* a signal: the interrupted pc */
	MEMTRACE_KERNEL_XFER = 1,  /* a system call that lands elsewhere: the pc after it */
	MEMTRACE_TIMESTAMP = 2,
	MEMTRACE_CPU = 3,
	MEMTRACE_FUNCTION = 4,       /* id in funclist.log, for the next two */
	MEMTRACE_RETURN_ADDRESS = 5, /* the function was called */
	MEMTRACE_RETURN_VALUE = 7,   /* the function returned */
	MEMTRACE_FILETYPE = 9,
	MEMTRACE_CACHE_LINE = 10,
	MEMTRACE_VERSION = 12,
	MEMTRACE_WINDOW = 14, /* a new value allows a gap in the flow of control */
	MEMTRACE_PAGE_SIZE = 18,
	MEMTRACE_CHUNK_INSNS = 20,
	MEMTRACE_CHUNK_FOOTER = 21,
	MEMTRACE_RECORD_ORDINAL = 22,
	MEMTRACE_SYSCALL = 25, /* its number; all ones: not known */
	MEMTRACE_BRANCH_TARGET = 29,
	MEMTRACE_SIGNAL_NUMBER = 40,   /* right behind marker 0 */
	MEMTRACE_HARDWARE_EVENT = 43,  /* kernel code begins: the pc that would have come next */
	MEMTRACE_HARDWARE_RETURN = 44, /* it ends: not 0 */
	MEMTRACE_SYMBOL = 101, /* ours: id in symbols.tsv of the symbol of what follows; 0: none */
};

#define MEMTRACE_VERSION_RETIRED \
	7 /* only retired instructions; directions and targets of branches */

/* Instructions only, x86-64, data accesses left out, with encodings, no system call numbers. */
#define MEMTRACE_FILETYPE_USER         0x344
#define MEMTRACE_FILETYPE_WHOLE_SYSTEM 0x40344 /* the same, with the kernel's code */
#define MEMTRACE_FILETYPE_SYSCALLS     0x400   /* with one of these: the numbers of system calls */
#define MEMTRACE_FILETYPE_INSNS_ONLY   0x4     /* in both: there are no records of data at all */
#define MEMTRACE_FILETYPE_CORES        0x10000 /* with one of these: a file for each core */

#define MEMTRACE_ID_SIZE 4 /* what DynamoRIO writes as the size of records 22 to 24 */

/* Write a record at @to. Return: where the next one goes. */
static inline uint8_t *memtrace_put_record(uint8_t *to, uint16_t type, uint16_t size, uint64_t addr)
{
	const uint32_t kind = (uint32_t)size << 16 | type; /* one store, not two */

	memcpy(to, &kind, sizeof(kind));
	memcpy(to + sizeof(kind), &addr, sizeof(addr));
	return to + sizeof(struct memtrace_record);
}
