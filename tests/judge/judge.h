/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Judge
 *
 * The state of checking one trace file. The parts that check share it: judge_header.c checks the
 * first records, judge_insn.c encodings and instructions, judge_kernel.c system calls and what the
 * kernel executed, judge_chunk.c the chunks of a zip file, judge_file.c other records and the order
 * of all. This header belongs to the inside of memtrace.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/tracerecord.h"
#include "tests/judge/judge_code.h"
#include "tests/judge/judge_flow.h"
#include "tests/judge/memtrace.h"

#define INSN_SIZE_MAX 15

enum expect {
	EXPECT_ANYTHING,
	EXPECT_PID,     /* after a thread that is not the first */
	EXPECT_CPU,     /* after a timestamp */
	EXPECT_FOOTER,  /* after the thread's exit */
	EXPECT_NOTHING, /* after the footer */
};

/* What must come next where a component of a zip file begins. */
enum chunk_step {
	CHUNK_BODY,
	CHUNK_ORDINAL, /* marker 22 */
	CHUNK_TIME,
	CHUNK_CPU,
	CHUNK_END, /* the component is over */
};

/* What a system call instruction waits for, if system calls have numbers. */
enum call_step {
	CALL_NONE,
	CALL_DUE,    /* its timestamp, cpu and marker 25 */
	CALL_KNOWN,  /* its kernel part may follow: only markers came behind marker 25, or, if
		      * numbers are not known, behind the instruction */
	CALL_INSIDE, /* of its kernel part */
};

struct judge {
	struct memtrace *trace;
	const char *name;           /* borrowed */
	struct memtrace_file *file; /* borrowed */
	uint64_t index;             /* of the record */
	unsigned n_faults;
	uint8_t cut[RECORD_SIZE]; /* the beginning of a record */
	size_t n_cut;
	bool is_over; /* nothing that follows is looked at */

	unsigned step; /* of the header */
	uint64_t version;
	enum expect expect;
	int last_marker;   /* its kind, if the last record was a marker; else -1 */
	uint64_t function; /* value of the last marker 4 */
	bool after_insn;   /* the last record was an instruction, or data of one */
	bool is_pid_due;   /* this record is a pid, and follows its thread */
	bool is_timed;     /* a timestamp and a cpu were seen, or their absence was reported */
	uint64_t time, cpu;

	bool is_zip;
	enum chunk_step chunk_step;
	uint64_t chunk;         /* number of the component */
	uint64_t chunk_insns;   /* of each component but the last, as marker 20 states */
	uint64_t n_chunk_insns; /* in this component so far */
	uint64_t n_visible;     /* records that tools see */

	enum call_step call_step;
	struct code call; /* the instruction */
	uint64_t call_number;
	unsigned n_events; /* hardware events that are open */
	uint64_t interrupted[MEMTRACE_EVENTS_MAX];

	uint8_t pieces[16]; /* of an encoding that waits for its instruction */
	unsigned n_pieces;
	unsigned n_piece_bytes;
	bool has_target; /* a marker 29 waits for its branch */
	uint64_t target;

	struct codes codes;
	struct flow flow;
};

/* Report a breach of a rule by the record that is being read. */
_printf_(2, 3) void judge_fault(struct judge *judge, const char *format, ...);

/* Return: whether one of the bits is in the file's type. */
static inline bool judge_has(const struct judge *judge, uint64_t file_type)
{
	return judge->file->file_type & file_type;
}

/* Check the next record while the header is not over. Return: whether it belongs to the header. */
_must_check_ bool judge_header(struct judge *judge, const struct record *rec);

/* Another header begins. */
void judge_header_again(struct judge *judge);

/* Return: whether records of the header may still come. */
_must_check_ bool judge_in_header(const struct judge *judge);

/* Report, at the end of the file, which records of the header are missing. */
void judge_header_end(struct judge *judge);

/* Check the next record, a piece of an encoding. */
void judge_encoding(struct judge *judge, const struct record *rec);

/*
 * Check the next record, an instruction.
 *
 * Return: 0; -ENOMEM or -E2BIG if its code cannot be remembered; -EIO if its address cannot be
 *          written.
 */
_must_check_ int judge_insn(struct judge *judge, const struct record *rec);

/* --- chunks ----------------------------------------------------------------------------------- */

/* The next record is the first one of another component. Return: 0 or -ENOMEM. */
_must_check_ int judge_component(struct judge *judge);

/*
 * Check what chunks demand of the next record, behind the header.
 *
 * Return: whether it is one of the records that tools do not see at the beginning of a component,
 *         about which there are no other rules.
 */
_must_check_ bool judge_chunk(struct judge *judge, const struct record *rec);

/* --- the kernel ------------------------------------------------------------------------------- */

/* Return: whether the instructions that come now are the kernel's. */
static inline bool judge_in_kernel(const struct judge *judge)
{
	return judge->call_step == CALL_INSIDE || judge->n_events > 0;
}

/* An instruction was checked, and is the last one. */
void judge_kernel_insn(struct judge *judge, const struct code *code);

/* Check what system calls demand of the next record, which is neither encoding nor instruction. */
void judge_kernel_other(struct judge *judge, const struct record *rec);

/* Check a marker 25 to 28, 43 or 44. */
void judge_kernel_marker(struct judge *judge, const struct record *rec);
