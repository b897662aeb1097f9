/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Judge
 *
 * The state of checking one file, shared by the parts that do it: judge_header.c its first records,
 * judge_insn.c encodings and instructions, judge_file.c the rest and the order of all. Inside of
 * memtrace.h, of no use to others.
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

/* A record comes while the header is not over. Return: whether it was one of the header. */
_must_check_ bool judge_header(struct judge *judge, const struct record *rec);

/* Whether records of the header may still come. */
_must_check_ bool judge_in_header(const struct judge *judge);

/* The file is over: report what is still missing of the header. */
void judge_header_end(struct judge *judge);

/* A piece of an encoding comes. */
void judge_encoding(struct judge *judge, const struct record *rec);

/* An instruction comes. Return: 0, -ENOMEM or -E2BIG for its code's sake, -EIO for its address's.
 */
_must_check_ int judge_insn(struct judge *judge, const struct record *rec);
