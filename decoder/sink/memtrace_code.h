/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace code
 *
 * Which code one address space has run, and where: what a drmemtrace writer must know to tell
 * whether an instruction's bytes were announced already. A block at an address is a *site*.
 *
 * Sites whose instructions have other bytes at the same address (a JIT that writes over its code, a
 * library in the place of another) exclude each other. When such a site runs, the code's generation
 * goes up, and whatever was announced in an older one counts no more. So one number a thread is
 * enough to see that announcements are void, and a run costs one lookup.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/vec.h"

struct memtrace_site {
	const struct ptd_block *block; /* borrowed */
	uint64_t base;
	uint64_t generation; /* the last one in which it agreed with every other site */
	uint32_t next;       /* another site with the same key, plus 1; 0: none */
};

struct memtrace_code {
	uint64_t serial; /* tells it from one that was freed before */
	uint64_t generation;
	size_t n_insns; /* instructions in all sites: what its memory is in proportion to */
	VEC(struct memtrace_site) sites;
	struct map by_key; /* block and base → index of a site */
	struct map by_pc;  /* pc → index of the site that claimed it last << 16 | instruction */
};

/* Return: an empty one with the number @serial; NULL if there is no memory. */
struct memtrace_code *memtrace_code_new(uint64_t serial);
struct memtrace_code *memtrace_code_free(struct memtrace_code *code);

/*
 * The site of @block at @base, as it runs now: code->generation is that of its bytes afterwards.
 *
 * @ret_site is its index, dense, from 0.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int memtrace_code_site(struct memtrace_code *code, const struct ptd_block *block,
				    uint64_t base, uint32_t *ret_site);

DEFINE_CLEANUP(struct memtrace_code *, memtrace_code_free);
