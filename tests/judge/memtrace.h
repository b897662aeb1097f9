/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory trace
 *
 * An independent reader and judge of drmemtrace offline traces. It was written from a description
 * of the format and shares no code with the writer that it tests. It knows traces of version 7 of
 * x86-64 programs, with encodings: for each thread or each core, in any container; of user code, of
 * system calls and their kernel parts, of whole systems; of instructions alone, or with data
 * addresses. It checks every rule that DynamoRIO's reader, checker and tools have for those, and
 * reports each breach in a line with the file, the record, the byte and the rule.
 *
 * Files are read once, as a stream; memory grows only with the number of different pcs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "tests/judge/judge_names.h"
#include "tests/judge/judge_schedule.h"
#include "util/vec.h"

#define MEMTRACE_VERSION_MIN 5
#define MEMTRACE_VERSION     7

/* Hardware events may be so deep in each other. */
#define MEMTRACE_EVENTS_MAX 29

/* Markers from 101 on are for users. They are counted together, as number 101. */
#define MEMTRACE_N_MARKERS 102

/* So many faults are printed for each file; further ones are only counted. */
#define MEMTRACE_FAULTS_MAX 50

/* What one file holds. */
struct memtrace_file {
	char *path;   /* NULL for bytes from memory */
	uint64_t pid; /* of a core the last one */
	uint64_t tid;
	uint64_t file_type;
	uint64_t first_time; /* µs since 1601; 0 if there is no timestamp */
	uint64_t n_records;
	uint64_t n_insns;
	uint64_t n_windows; /* runs of instructions without a gap between */
	uint64_t n_markers[MEMTRACE_N_MARKERS];
};

struct memtrace {
	FILE *faults;    /* borrowed: breaches are printed here */
	FILE *addresses; /* borrowed, or NULL: the pc of every instruction is written here */
	uint64_t n_faults;
	VEC(struct memtrace_file) files;
	char *serial_schedule, *cpu_schedule; /* paths; NULL: there is no such file */
	struct schedule schedule;             /* as the files of the trace state it */
	struct names functions, symbols;      /* of markers 4 and 101 */
};

void memtrace_deinit(struct memtrace *trace);

/*
 * Find the trace files of @dir, or of @dir/trace if that exists, without reading them. Any other
 * file there that would make DynamoRIO fail is a fault. Files are in the order of their names.
 *
 * Return: 0 or negative errno, with @ret_path (caller frees) naming what could not be read.
 */
_must_check_ int memtrace_find(struct memtrace *trace, const char *dir, char **reterr_path);

/* Read and check all files found. Return: like memtrace_find(). */
_must_check_ int memtrace_check(struct memtrace *trace, char **reterr_path);

/*
 * Reduce the files found to those of one thread, in the order of their first timestamps.
 *
 * Return: like memtrace_find(); -ENOENT and no path if there is no such thread.
 */
_must_check_ int memtrace_select(struct memtrace *trace, uint64_t pid, uint64_t tid,
				 char **reterr_path);

/*
 * Check the @size bytes of one file, called @name in faults. @ret_file is filled, its path NULL.
 *
 * Return: 0, also if there are faults; -ENOMEM; -E2BIG if it has too many different pcs; -EIO if
 * addresses cannot be written.
 */
_must_check_ int memtrace_check_bytes(struct memtrace *trace, const char *name,
				      const uint8_t *bytes, size_t size,
				      struct memtrace_file *ret_file);

/* Check the file at @path. Return: as above; or negative errno if it cannot be read. */
_must_check_ int memtrace_check_file(struct memtrace *trace, const char *path,
				     struct memtrace_file *ret_file);

/*
 * Read only pid, tid and first timestamp of the file at @path; what is not there is 0.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_peek(const char *path, struct memtrace_file *ret_file);
