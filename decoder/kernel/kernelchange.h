/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel changes
 *
 * What records say of the kernel's code that was changed (TEXT_POKE), came or went (KSYMBOL: BPF
 * programs, trampolines; BPF_EVENT: of which program the recorder kept the code): each an event in
 * the history of some bytes; and which of them are to be looked at together.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/kernel/history.h"
#include "decoder/kernel/made.h"
#include "decoder/trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

struct bpfprog;
struct kernel_function;

/* What one record says of a range; of its event, start is the address. */
struct kernelchange {
	uint64_t last; /* inclusive */
	size_t order;  /* of the records */
	struct history_event event;
};

/* Changes of the same bytes, or near each other: they are looked at together. */
struct kernelchunk {
	uint64_t start;
	uint64_t last; /* inclusive */
	size_t first_change, n_changes;
};

struct kernelchanges {
	VEC(struct kernelchange) all;   /* by record; once grouped, by chunk and then by record */
	VEC(struct kernelchunk) chunks; /* by address; none overlaps another */
	size_t n_skipped;               /* records that make no sense */

	/* The rest is the changes' own. */
	const struct bpfprog *programs; /* borrowed, like made */
	size_t n_programs;
	struct made *made;
	struct map by_name;                      /* hash of a function → index into functions */
	struct map by_id;                        /* of a BPF program → index into programs */
	size_t n_loaded;                         /* functions of them */
	VEC(struct kernel_function *) functions; /* that objects name */
};

/*
 * Begin with none. The objects of functions are made with @made; of @programs the recorder kept the
 * code. Both must outlive the changes.
 *
 * Return: 0 or -ENOMEM; then, too, they are to be freed.
 */
_must_check_ int kernelchanges_init(struct kernelchanges *changes, const struct bpfprog *programs,
				    size_t n_programs, struct made *made);

/* The objects of functions must not be used any more. */
void kernelchanges_deinit(struct kernelchanges *changes);

/*
 * Append what @record says; most say nothing. The event's bytes stay the record's.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int kernelchanges_add(struct kernelchanges *changes,
				   const struct trace_record *record);

/* All were added: sort them, and make the chunks of them. Return: 0 or -ENOMEM. */
_must_check_ int kernelchanges_group(struct kernelchanges *changes);

/* All were looked at: only the functions that objects name stay, and what was counted. */
void kernelchanges_settle(struct kernelchanges *changes);
