/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel
 *
 * The kernel's address space over time. It is made of the copy of the kernel's code and modules
 * that lies beside the recording (kcore.h), and of what the sideband states about code that changed
 * (struct kernelchanges). Code that changed is mapped as synthetic objects (struct synthetics)
 * where the records and the copy agree on its bytes; where they do not, it is mapped without bytes,
 * so that it becomes a gap.
 *
 * A change holds from the time of its record on. The kernel makes the record while a breakpoint
 * stops every CPU that comes to the changed code, so that no CPU runs the old code or the new code
 * at that time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/kernel/history.h"
#include "decoder/kernel/kcore.h"
#include "decoder/symbol/source.h"
#include "decoder/trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

/*
 * Objects whose code is in no file, because the decoder computed it: the versions of kernel code
 * that was changed while it was recorded. All synthetic objects share one piece of memory.
 */

/* Code of one object at one address. */
struct synthetic_part {
	const struct object *object;
	uint64_t address;
	uint64_t offset; /* of the bytes in the shared memory */
	size_t size;
};

struct synthetics {
	struct objects *objects; /* borrowed */
	uint8_t *bytes;          /* addresses of SYNTHETICS_BYTES_MAX of them; NULL: none yet */
	size_t size;             /* bytes in use */
	struct map by_content;   /* hash → index into parts */
	VEC(struct synthetic_part) parts;
	VEC(struct object *) list;
};

/*
 * What the sideband states about kernel code that was changed (TEXT_POKE records), or that came or
 * went (KSYMBOL records of BPF programs and trampolines; BPF_EVENT records of programs whose code
 * the recorder kept). Each statement is a change in the history of some bytes (history.h). Changes
 * of the same bytes, or of bytes that are near each other, form a chunk.
 */

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
	const struct bpfprog *programs; /* borrowed */
	size_t n_programs;
	struct synthetics *synthetics;           /* borrowed */
	struct map by_name;                      /* hash of a function → index into functions */
	struct map by_id;                        /* id of a BPF program → index into programs */
	size_t n_loaded;                         /* functions of programs, for each load */
	VEC(struct kernel_function *) functions; /* that objects refer to */
};

struct kernel {
	struct kcore kcore;
	struct synthetics synthetics; /* versions of the code that changed */
	struct kernelchanges changes; /* only their functions and n_skipped stay */
	struct space *space;          /* NULL: nothing is known of the kernel's code */

	/* What Linux has at the beginning of [uprobes] since 6.11, to which a function with a
	 * uretprobe returns; NULL: no process has that page. (It was a breakpoint before that.) */
	const struct object *trampoline;
	uint64_t trampoline_at, trampoline_size; /* the bytes in the object */
	struct symbol_source trampoline_symbols;

	/* Of a recording without a copy of the kernel: between which addresses its records say that
	 * the kernel and its modules are. */
	uint64_t lacks_from, lacks_to; /* the last one; 0: nowhere */
};

/*
 * Make the kernel's space from the records of @trace and the recording's copy of the kernel. @trace
 * and @objects are borrowed.
 *
 * Return: 0 or -ENOMEM; in both cases the caller deinitializes @kernel.
 */
_must_check_ int kernel_init(struct kernel *kernel, const struct trace *trace,
			     struct objects *objects);
void kernel_deinit(struct kernel *kernel);

/* Return: whether the kernel's code at @ip would be known if the recording had a copy of it. */
bool kernel_lacks(const struct kernel *kernel, uint64_t ip);
