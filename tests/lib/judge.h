/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Judge
 *
 * The state of checking one trace file. The parts that check share it: judge_header.c checks the
 * first records, judge_insn.c encodings and instructions, judge_file.c other records and the order
 * of all. This header belongs to the inside of memtrace.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "tests/lib/judge_code.h"
#include "tests/lib/judge_flow.h"
#include "tests/lib/judge_record.h"
#include "tests/lib/memtrace.h"

#define INSN_SIZE_MAX 15

enum expect {
	EXPECT_ANYTHING,
	EXPECT_CPU,     /* after a timestamp */
	EXPECT_FOOTER,  /* after the thread's exit */
	EXPECT_NOTHING, /* after the footer */
};

struct judge {
	struct memtrace *trace;
	const char *name;           /* borrowed */
	struct memtrace_file *file; /* borrowed */
	uint64_t index;             /* of the record */
	unsigned n_faults;

	unsigned step; /* of the header */
	enum expect expect;
	int last_marker; /* its kind, if the last record was a marker; else -1 */
	bool is_timed;   /* a timestamp and a cpu were seen, or their absence was reported */
	uint64_t time;

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

/* Check the next record while the header is not over. Return: whether it belongs to the header. */
_must_check_ bool judge_header(struct judge *judge, const struct record *rec);

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
