/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitdump
 *
 * The file (jit-PID.dump) in which a JIT compiler notes the code that it made: which function it
 * put where and when, with the bytes, and when it moved the code. The file may still have been
 * growing when it was copied, so that it may end anywhere. Processes that were forked from the one
 * that began it may write into it, too. A CLOSE record says nothing: a child that ends writes one
 * into the dump of its parent, which goes on behind it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/source.h"
#include "ptd/record.h"
#include "util/vec.h"

#define JITDUMP_EVENTS_MAX (1u << 22) /* the largest known dump has 16 000 */
#define JITDUMP_NAME_MAX   4095       /* bytes; longer names are cut */
#define JITDUMP_LINES_MAX  (1u << 22) /* bytes of one function's lines; those behind are not used */

/* Where the code of a source line begins. */
struct jitdump_line {
	uint64_t address;
	const char *file;      /* in the file; NULL: not known */
	uint32_t line, column; /* 0: not known */
	uint32_t order;        /* its place in the file */
};

/* A function whose code the compiler made. */
struct jitdump_load {
	uint64_t address;
	uint64_t size;
	uint64_t offset;     /* of its code in the file */
	uint64_t index;      /* the compiler's number for it */
	uint64_t lines;      /* offset in the file of what says its source lines, and its size; */
	uint64_t lines_size; /* 0: nothing does; */
	uint64_t n_lines;    /* and how many it states */
	uint64_t frames;     /* offset in the file of its call frame information (.eh_frame), and */
	uint64_t frames_size; /* its size; 0: there is none */
	bool is_by_rbp;       /* there is none, because the function keeps rbp for its frame */
	bool has_sorted;      /* whether the lines are in sorted; they are when one was asked for */
	VEC(struct jitdump_line) sorted;
	const char *name; /* in the file; it need not end with a NUL after @name_size bytes */
	uint16_t name_size;
	struct ptd_jit_note note; /* set by who knows the clock of the events */
};

enum jitdump_kind {
	JITDUMP_CODE_LOAD, /* the code was put at an address */
	JITDUMP_CODE_MOVE, /* the code was moved to an address */
};

struct jitdump_event {
	uint64_t time; /* CLOCK_MONOTONIC in ns; or TSC ticks, see time_is_tsc */
	uint64_t address;
	uint64_t from;  /* of a MOVE: where the code was before */
	uint32_t load;  /* index in loads */
	uint32_t order; /* its place in the file */
	uint32_t pid;   /* whose code it is, in the pid namespace of the process */
	enum jitdump_kind kind;
};

struct jitdump {
	/* The names of the code, its source positions, and how its functions are unwound, by its
	 * offset in the file, which does not change when the code is moved. */
	struct symbol_source symbols;
	const uint8_t *bytes; /* of the file; borrowed */

	/*
	 * How much larger the addresses of source lines are than those of the code. Some compilers
	 * (V8, LLVM) add the size of the ELF header that perf puts before the code. Then no
	 * function has a line nearer to its start.
	 */
	uint64_t lines_bias;

	bool time_is_tsc;
	uint32_t pid;                     /* that the head states */
	bool is_of_one;                   /* all events have the same pid */
	VEC(struct jitdump_load) loads;   /* in file order */
	VEC(struct jitdump_event) events; /* by time; equal times in file order */

	/* Records whose fields contradict each other, or that name code that was not loaded. */
	size_t n_skipped;
	/* The offset of the record in which the file ends; 0: the file is whole. */
	uint64_t cut_at;
};

/*
 * Parse a jitdump of @size bytes. @bytes is borrowed until @ret_dump is deinitialized.
 *
 * Return: 0, also if the file is cut; -EBADMSG if the bytes are no jitdump; -EOPNOTSUPP if the
 *         jitdump was written on a machine of the other byte order, has a later version, or has
 *         flags without a known meaning; -ENOMEM. On -EBADMSG and -EOPNOTSUPP, @reterr_why is a
 *         constant text for the user.
 */
_must_check_ int jitdump_parse(const uint8_t *bytes, size_t size, struct jitdump *ret_dump,
			       const char **reterr_why);
void jitdump_deinit(struct jitdump *dump);
