/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf map
 *
 * A text file in which a JIT compiler names its code, and says no more about it: lines of an
 * address and a size, both in hex, and a name ("7f00a000 1c JS:~fib"). A process has one perf map
 * and may have thousands of pieces of JIT code, each an object of its own. So the text is parsed
 * once, when the first name is asked for, and each piece has a source over the lines that begin in
 * it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/source.h"
#include "util/map.h"
#include "util/mapfile.h"
#include "util/vec.h"

/* Of all perf maps of a snapshot together; that of a large program has a million. */
#define PERFMAP_LINES_MAX ((size_t)1 << 23)

struct perfmap_name {
	uint64_t address;
	uint64_t size;
	const char *name; /* in the text */
	uint32_t line;
	uint16_t name_size;
};

struct perfmap {
	const struct mapfile *text;     /* borrowed */
	size_t *n_lines_left;           /* borrowed: how many lines may still be parsed */
	VEC(struct perfmap_name) names; /* by address, then line */
	bool is_parsed;
};

/*
 * Parse the text, unless that has been done. Malformed lines are left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int perfmap_parse(struct perfmap *perfmap);
void perfmap_deinit(struct perfmap *perfmap);

/* The source of the code from @start on, before @end. */
struct perfmap_source {
	struct symbol_source source;
	struct perfmap *perfmap; /* borrowed */
	uint64_t start, end;
};

void perfmap_source_init(struct perfmap_source *source, struct perfmap *perfmap, uint64_t start,
			 uint64_t end);
void perfmap_source_deinit(struct perfmap_source *source);

/* --- those of a snapshot ---------------------------------------------------------------------- */

struct perfmap_file;

/* The perf maps of a snapshot, DIR/jit/perf-PID.map. */
struct perfmaps {
	const char *dir; /* the snapshot; borrowed */
	VEC(struct perfmap_file *) files;
	struct map by_pid; /* → index into files */
	size_t n_lines_left;
};

/* @dir, the snapshot, must outlive @perfmaps. */
void perfmaps_init(struct perfmaps *perfmaps, const char *dir);
void perfmaps_deinit(struct perfmaps *perfmaps);

/*
 * Find the perf map of process @pid, which stays valid as long as @perfmaps.
 *
 * Return: 0, with NULL if the process has none; or -ENOMEM.
 */
_must_check_ int perfmaps_find(struct perfmaps *perfmaps, uint32_t pid,
			       struct perfmap **ret_perfmap);
