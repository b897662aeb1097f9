/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Layout of a snapshot
 *
 * A snapshot is a perf.data directory: `perf script -i DIR` reads it. Files that perf does not know
 * lie beside `data`. ptd-snapshot(5) describes the format in full.
 *
 *	DIR/data		perf.data: attrs, sideband, AUXTRACE
 *	DIR/pieces		one line for each MiB of data: its SHA-256
 *	DIR/objects/		the files that were executed, laid out as perf's build-id cache:
 *				.build-id/ab/cdef…/elf; one without a build-id, or whose build-id
 *				another has too, at sha256/<hex of its content>/elf; the file of the
 *				vDSO is called "vdso"
 *	DIR/objects.map		one line an object: its build-id, or "sha256:<hex>", or "-" if it is
 *				missing, with a space and the reason, if that is known; a tab; the
 *				path it was mapped by. Before it "@major:minor:inode" and a space,
 *				if only records that name this inode mean this file
 *	DIR/jit/		jit-PID.dump: what a JIT compiler said of its code, and
 *				jit-PID.N.dump the Nth of a process; perf-PID.map: the names alone
 *	DIR/jit.map		one line a jitdump: PID, the time in ns of its first mapping, and
 *its name in jit, or "-" and the reason why it is missing, divided by spaces; a tab; the path it
 *was mapped by, as in objects.map
 *	DIR/mem/		PID-ADDR (decimal, hex): anonymous executable memory from there on;
 *				of the software source PID-START.code (decimal): the code that a
 *				program ran that is in no file, see struct ptd_code_header
 *	DIR/clock		of hardware: "tsc monotonic_ns realtime_ns" lines, samples of the
 *				clocks of about once a second
 *	DIR/kcore_dir/		if the kernel was traced, as perf has it: kcore, an ELF file of its
 *				code; kallsyms, the names; modules, as /proc/modules
 *	DIR/manifest		key=value lines, UTF-8: what, when, where, how much
 *	DIR/SHA256SUMS		of every other file, as sha256sum -c reads it; written last
 */

#include <stdint.h>

/* The recorder keeps snapshots in the directory PTD_STATE_SNAPSHOTS of its state directory. */
#define PTD_STATE_DIR_DEFAULT "/var/lib/ptd"
#define PTD_STATE_SNAPSHOTS   "snapshots"

#define PTD_SNAPSHOT_DATA        "data"
#define PTD_SNAPSHOT_PIECES      "pieces"
#define PTD_SNAPSHOT_OBJECTS     "objects"
#define PTD_SNAPSHOT_OBJECTS_MAP "objects.map"
#define PTD_SNAPSHOT_JIT         "jit"
#define PTD_SNAPSHOT_JIT_MAP     "jit.map"
#define PTD_SNAPSHOT_MEM         "mem"
#define PTD_SNAPSHOT_CLOCK       "clock"
#define PTD_SNAPSHOT_KCORE_DIR   "kcore_dir"
#define PTD_SNAPSHOT_KCORE       PTD_SNAPSHOT_KCORE_DIR "/kcore"
#define PTD_SNAPSHOT_KALLSYMS    PTD_SNAPSHOT_KCORE_DIR "/kallsyms"
#define PTD_SNAPSHOT_MODULES     PTD_SNAPSHOT_KCORE_DIR "/modules"
#define PTD_SNAPSHOT_MANIFEST    "manifest"
#define PTD_SNAPSHOT_SUMS        "SHA256SUMS"

/*
 * Memory that was read when the snapshot was taken, of all processes: this header, and pieces, each
 * followed by its bytes.
 */
#define PTD_SNAPSHOT_MEM_PAGES PTD_SNAPSHOT_MEM "/pages"
#define PTD_PAGES_MAGIC        UINT64_C(0x0073656761706470) /* "pdpages" */
#define PTD_PAGES_VERSION      1u

struct ptd_pages_header {
	uint64_t magic;
	uint32_t version;
	uint32_t rest; /* 0 */
};

struct ptd_pages_piece {
	uint32_t pid;
	uint32_t rest; /* 0 */
	uint64_t address;
	uint64_t size; /* of its bytes */
};

/*
 * A code log: this header, @n_pieces pieces, and bytes. It belongs to the program that process PID
 * ran from START on, until the START of the next code log of the same process. START is in ns on
 * the records' clock.
 *
 * Pieces of time 0 come first, ordered by address, and do not overlap. They are the first bytes
 * that were in memory, and hold for all of the program's time wherever no file is mapped. The other
 * pieces come in the order of time: from its time on, memory has the bytes of a piece, whatever is
 * mapped there.
 */
#define PTD_CODE_SUFFIX  ".code"
#define PTD_CODE_MAGIC   UINT64_C(0x0065646f63647470) /* "ptdcode" */
#define PTD_CODE_VERSION 1u

struct ptd_code_header {
	uint64_t magic;
	uint32_t version;
	uint32_t n_pieces;
};

struct ptd_code_piece {
	uint64_t time; /* in ns; 0: from the beginning of the program */
	uint64_t address;
	uint64_t offset; /* of its bytes in the file; 0: from @time on the bytes are not known */
	uint64_t size;
};

/* Value of the manifest's first key, "format". A reader refuses other values. */
#define PTD_SNAPSHOT_FORMAT "ptd-snapshot-1"

/* Keys of the manifest that the decoder needs; the others are for people. */
#define PTD_MANIFEST_FORMAT "format"
/* When the snapshot was taken, in ns on the records' clock. */
#define PTD_MANIFEST_CLOCK "clock_ns"

/* CLOCK_REALTIME minus the records' clock, in ns. */
#define PTD_MANIFEST_REALTIME_OFFSET "realtime_offset_ns"
/* The records' clock minus CLOCK_MONOTONIC, in ns. */
#define PTD_MANIFEST_MONOTONIC_OFFSET "monotonic_offset_ns"
/*
 * Of a snapshot of one process: that process and those of its descendants that ran, divided by
 * commas; on several such lines if there are many. All other processes are out of scope.
 */
#define PTD_MANIFEST_SCOPE_PIDS "scope_pids"
/*
 * How many bytes of the PT that was asked for are missing because rings were overwritten; and since
 * when none are missing, on the records' clock in ns. Without the second key nothing was
 * overwritten.
 */
#define PTD_MANIFEST_OVERWRITTEN    "pt_overwritten"
#define PTD_MANIFEST_COMPLETE_SINCE "complete_since_ns"
/*
 * Until when the PT of all CPUs is in the snapshot, on the records' clock in ns: the rings were
 * read one after the other from then on. Later PT must not be decoded, because a thread may have
 * run on another CPU, whose ring had been read already, before it ran on this one.
 */
#define PTD_MANIFEST_COMPLETE_UNTIL "complete_until_ns"
/*
 * The command that ran, and its process, as the client says that took the snapshot; and whether the
 * recording of the command is complete ("yes") or its beginning was overwritten ("no").
 */
#define PTD_MANIFEST_COMMAND          "command"
#define PTD_MANIFEST_COMMAND_PID      "command_pid"
#define PTD_MANIFEST_COMMAND_COMPLETE "command_complete"
/*
 * The condition that had the snapshot taken, the thread in which it held, and when, on
 * the records' clock in ns, as the client says. Without the keys somebody asked for the snapshot.
 */
#define PTD_MANIFEST_TRIGGER      "trigger"
#define PTD_MANIFEST_TRIGGER_TID  "trigger_tid"
#define PTD_MANIFEST_TRIGGER_TIME "trigger_ns"
/* How many bytes of PT were overwritten while the rings were copied. */
#define PTD_MANIFEST_DROPPED "pt_dropped"
/*
 * Since when the task records are complete, in ns on the records' clock; 0: since before the PT.
 * The two keys after this one follow "cpu.N.": the time of the oldest switch record of the CPU that
 * is left, and "no" if older ones are gone. Older PT must not be attributed to a thread.
 */
#define PTD_MANIFEST_SIDEBAND_SINCE  "sideband_since_ns"
#define PTD_MANIFEST_SIDEBAND_LOST   "sideband_lost"
#define PTD_MANIFEST_SIDEBAND_UNREAD "sideband_unread"

#define PTD_MANIFEST_TAKEN_BY_UID    "taken_by_uid"
#define PTD_MANIFEST_SWITCH_OLDEST   "switch_oldest_ns"
#define PTD_MANIFEST_SWITCH_COMPLETE "switch_complete"
