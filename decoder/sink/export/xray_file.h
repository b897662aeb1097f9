/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * XRay file
 *
 * The flight data recorder file (decoder/util/fdr.h) of one thread (threadfile.h): one block, in
 * version 1 or 5.
 *
 * Time does not go back in a file: where the clocks of CPUs differ, a record has the latest time so
 * far.
 *
 * The call stream finds functions that were open before the trace began, or before a gap, when one
 * returns to them. Their entries belong to the beginning of their section of the file, which is the
 * trace up to the first gap, or from one gap to the next. They are kept until the section ends, and
 * put there; what stands behind them is moved.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/export/threadfile.h"
#include "decoder/util/fdr.h"
#include "util/vec.h"

/* What all files of a directory share. */
struct xray_files {
	struct threadfiles out;
	uint16_t version;
	uint64_t frequency; /* ticks per second; 0: not known */
};

struct xray_file {
	struct xray_files *files; /* borrowed; NULL until it is begun */
	struct threadfile out;
	uint64_t t;   /* of the last record that has a time */
	uint32_t cpu; /* of the last record that has one */

	bool has_section; /* entries can be put at the beginning of the section */
	uint64_t section; /* which is this offset */
	VEC(uint32_t)
	below; /* ids of the functions whose entries are to be put there, the innermost
				first */
};

/* Whose file it is, and when its first record is. */
struct xray_file_head {
	const char *comm;
	uint32_t pid, tid;
	uint32_t thread; /* its number, which makes the name unique */
	uint32_t cpu;
	uint64_t t;
	int64_t realtime_offset_ns; /* t and this is the time of day in ns */
};

/*
 * Begin a file. @files is borrowed until xray_file_deinit().
 *
 * Return: 0, or negative errno. The functions below that return int do the same.
 */
_must_check_ int xray_file_begin(struct xray_file *file, struct xray_files *files,
				 const struct xray_file_head *head);

/* Begin a section with the next record, which is at @t on @cpu. */
_must_check_ int xray_file_section(struct xray_file *file, uint64_t t, uint32_t cpu);

/* Write a function record. */
_must_check_ int xray_file_function(struct xray_file *file, uint64_t t, uint32_t cpu,
				    enum fdr_action action, uint32_t function);

/* The function was open before the section began, below all that is known to have been. */
_must_check_ int xray_file_below(struct xray_file *file, uint32_t function);

/* Write a custom event with the bytes of @text. */
_must_check_ int xray_file_event(struct xray_file *file, uint64_t t, uint32_t cpu,
				 const char *text);

/* Write the end, and give the file its name. */
_must_check_ int xray_file_finish(struct xray_file *file);

/* @file may be zero: it was never begun. */
void xray_file_deinit(struct xray_file *file);
