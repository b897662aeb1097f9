/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel changes
 *
 * What the sideband states about kernel code that was changed (TEXT_POKE records), or that came or
 * went (KSYMBOL records of BPF programs and trampolines; BPF_EVENT records of programs whose code
 * the recorder kept). Each statement is a change in the history of some bytes (history.h). Changes
 * of the same bytes, or of bytes that are near each other, form a chunk.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/kernel/history.h"
#include "decoder/kernel/synthetic.h"
#include "decoder/trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

struct bpfprog;
struct kernel_function;

struct kernelchange {
	uint64_t last;                /* address of its last byte */
	size_t order;                 /* of its record */
	struct history_change change; /* whose start is an address */
};

/* Changes from which one history is made. */
struct kernelchunk {
	uint64_t start;
	uint64_t last; /* inclusive */
	size_t first_change, n_changes;
};

struct kernelchanges {
	VEC(struct kernelchange) list;  /* by record; once grouped, by chunk and then by record */
	VEC(struct kernelchunk) chunks; /* by address; they do not overlap */
	size_t n_skipped;               /* records that make no sense */

	/* All other fields are private. */
	const struct bpfprog *programs; /* borrowed */
	size_t n_programs;
	struct synthetics *synthetics;           /* borrowed */
	struct map by_name;                      /* hash of a function → index into functions */
	struct map by_id;                        /* id of a BPF program → index into programs */
	size_t n_loaded;                         /* functions of programs, for each load */
	VEC(struct kernel_function *) functions; /* that objects refer to */
};

/*
 * Begin without changes. @programs are the BPF programs whose code the recorder kept; the objects
 * of functions are made in @synthetics. Both are borrowed.
 *
 * Return: 0 or -ENOMEM; in both cases the caller deinitializes @changes.
 */
_must_check_ int kernelchanges_init(struct kernelchanges *changes, const struct bpfprog *programs,
				    size_t n_programs, struct synthetics *synthetics);

/* Free all; the objects of functions must not be used any more. */
void kernelchanges_deinit(struct kernelchanges *changes);

/*
 * Append the changes that @record states, if any: most records state none. The changes point into
 * the record's payload.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int kernelchanges_add(struct kernelchanges *changes,
				   const struct trace_record *record);

/* Sort the changes, and make chunks of them. No change may be added any more. Return: 0 or
 * -ENOMEM. */
_must_check_ int kernelchanges_group(struct kernelchanges *changes);

/* Free the changes and the chunks. The functions that objects refer to stay, and the count of
 * skipped records. */
void kernelchanges_forget(struct kernelchanges *changes);
