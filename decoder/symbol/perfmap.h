/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf map
 *
 * A text file in which a JIT compiler names its code, and says no more about it: lines of an
 * address, a size and a name ("7f00a000 1c JS:~fib"). The numbers are in hex, with "0x" before them
 * or without. A process has one perf map and may have thousands of pieces of JIT code, each an
 * object of its own, so the text is parsed once, when the first name is asked for.
 *
 * A line has no time, and compilers append lines. So this is what a name is claimed for:
 *
 *     names of the lines at an address     | the code there at last | code that was there before
 *     -------------------------------------|------------------------|---------------------------
 *     one                                  | that name              | that name: most code that
 *                                          |                        | changes is patched
 *     several: the compiler used it again  | that of the last line  | none
 *
 * Left out are lines that are malformed, of no bytes, or of more than PERFMAP_SIZE_MAX, and a last
 * line without a newline, whose writer may not have finished the name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/source.h"
#include "decoder/symbol/symtab.h"
#include "util/map.h"
#include "util/mapfile.h"
#include "util/vec.h"

/* Of all perf maps of a snapshot together; that of a large program has a million. */
#define PERFMAP_LINES_MAX ((size_t)1 << 23)

/* Code can call other code at most 2 GiB away, so no function is larger. */
#define PERFMAP_SIZE_MAX (UINT64_C(1) << 31)

struct perfmap_program {
	uint32_t number;           /* how many programs the process has begun */
	uint32_t parent;           /* that forked it; 0: none, or it has executed another program */
	uint32_t number_of_parent; /* when it forked */
};

struct perfmap_range {
	uint64_t start;  /* the range ends where the next one starts */
	uint32_t name;   /* index into names, or SYMTAB_NONE */
	bool has_others; /* older lines give it other names */
};

struct perfmap {
	const struct mapfile *text;       /* borrowed */
	size_t *n_lines_left;             /* borrowed: how many lines may still be parsed */
	VEC(struct symtab_symbol) names;  /* by address, then line, which is their order */
	VEC(struct perfmap_range) ranges; /* by address */
	bool is_parsed;
};

/*
 * Parse the text, unless that has been done.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int perfmap_parse(struct perfmap *perfmap);
void perfmap_deinit(struct perfmap *perfmap);

/*
 * Find the name of the code at @address: of what is there at last, or else of what was there
 * before.
 *
 * @ret_name is NULL if it has none. @ret_end is the first address above @address for which the
 * answer may differ.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int perfmap_find(struct perfmap *perfmap, uint64_t address, bool is_last,
			      const struct symtab_symbol **ret_name, uint64_t *ret_end);

/* --- those of a snapshot ---------------------------------------------------------------------- */

struct perfmap_file;

/*
 * The perf maps of a snapshot, DIR/jit/perf-PID.map. Each is of the last program that its process
 * executed. A process also has the names of the one that forked it, as long as neither has executed
 * another program: some compilers fork workers, which go on writing into the same file. They are
 * used where its own map has none, as the names of code that was there before.
 */
struct perfmaps {
	const char *dir; /* the snapshot; borrowed */
	VEC(struct perfmap_file *) files;
	struct map by_pid; /* → index into files */
	size_t n_lines_left;

	VEC(struct perfmap_program) programs;
	struct map programs_by_pid; /* → index into programs */
};

/* @dir, the snapshot, must outlive @perfmaps. */
void perfmaps_init(struct perfmaps *perfmaps, const char *dir);
void perfmaps_deinit(struct perfmaps *perfmaps);

/*
 * Note, in the order in which it happened, that process @pid was forked by @parent, which is 0 if
 * it executed another program instead. Return: 0 or -ENOMEM.
 */
_must_check_ int perfmaps_begin(struct perfmaps *perfmaps, uint32_t pid, uint32_t parent);

/*
 * Find the perf map of process @pid, which stays valid as long as @perfmaps.
 *
 * Return: 0, with NULL if the process has none; or -ENOMEM.
 */
_must_check_ int perfmaps_find(struct perfmaps *perfmaps, uint32_t pid,
			       struct perfmap **ret_perfmap);

/* The source of the code of process @pid that is where it was at last, or that was there before. */
struct perfmap_source {
	struct symbol_source source;
	struct perfmaps *perfmaps; /* borrowed */
	uint32_t pid;
	bool is_last;
};

void perfmap_source_init(struct perfmap_source *source, struct perfmaps *perfmaps, uint32_t pid,
			 bool is_last);
