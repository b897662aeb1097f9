/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Flight data recorder format
 *
 * The numbers of XRay's flight data recorder (FDR) format, versions 1 to 5. A file is a header and
 * blocks of records; a block has the records of one thread, in their order. All is unaligned.
 *
 *	header	u16 version, u16 type, u32 flags, u64 ticks per second, u64 size of what follows (of
 *		each block, if all have the same size), 8 bytes reserved
 *	record	bit 0 of the first byte: 0, a function record of 8 bytes; 1, a metadata record of 16
 *
 *	function record	u32: 0 in bit 0, the action in bits 1 to 3, the function's id in bits 4 to
 *			31; u32 ticks since the last record that has a time
 *	metadata record	u8: 1 in bit 0, the kind in bits 1 to 7; 15 bytes of data
 *
 * A machine writes its own byte order. One with the largest byte first also takes the bits from the
 * other end: bit 0 is the most significant one.
 */

#define FDR_VERSION_MAX   5
#define FDR_TYPE          1
#define FDR_HEADER_SIZE   32
#define FDR_FUNCTION_SIZE 8
#define FDR_METADATA_SIZE 16

/* Where numbers stand in the header. */
#define FDR_HEADER_DATA_SIZE 16

#define FDR_FUNCTION_MAX ((1u << 28) - 1)

enum fdr_flag {
	FDR_CONSTANT_TSC = 1 << 0, /* ticks at a constant frequency */
	FDR_NONSTOP_TSC = 1 << 1,  /* ticks while the CPU sleeps, too */
};

/* The kinds of metadata records, with their data. */
enum fdr_kind {
	FDR_NEW_BUFFER = 0,     /* thread: u16 in version 1, which later ones write as i32 */
	FDR_END_OF_BUFFER = 1,  /* version 1 */
	FDR_NEW_CPU = 2,        /* u16 CPU, u64 time in ticks */
	FDR_TSC_WRAP = 3,       /* u64 time */
	FDR_WALL_TIME = 4,      /* u64 seconds, u32 µs */
	FDR_CUSTOM_EVENT = 5,   /* i32 size of the bytes behind the record; u64 time; in version 4,
				 * u16 CPU; version 5 has i32 ticks instead of time and CPU */
	FDR_CALL_ARGUMENT = 6,  /* u64 value; behind an entry with arguments */
	FDR_BUFFER_EXTENTS = 7, /* u64 size of the block behind this record; from version 2 on */
	FDR_TYPED_EVENT = 8,    /* i32 size, i32 ticks, u16 type */
	FDR_PID = 9,            /* i32 process; from version 3 on */
	_FDR_KINDS,
};

enum fdr_action {
	FDR_ENTRY = 0,
	FDR_EXIT = 1,
	FDR_TAIL_EXIT = 2, /* by a jump to another function, whose entry follows */
	FDR_ENTRY_ARGUMENTS = 3,
	_FDR_ACTIONS,
};

/*
 * The section of an ELF file that says which function an id is: the ids are 1, 2, … in the order in
 * which functions first stand in it. An entry: u64 address of a place that is instrumented, u64
 * that of its function, u8 kind, u8 whether it always is, u8 version; 13 bytes reserved. From
 * version 2 on, each address is relative to where it stands.
 */
#define FDR_MAP_SECTION       "xray_instr_map"
#define FDR_MAP_ENTRY_SIZE    32
#define FDR_MAP_RELATIVE_FROM 2
