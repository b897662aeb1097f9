/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace code
 *
 * The code that one address space has run, with its addresses. A writer of a drmemtrace file needs
 * it to decide whether the bytes of an instruction were announced already. A block at an address is
 * a *site*.
 *
 * Two sites exclude each other if their instructions have different bytes at the same address: a
 * JIT compiler wrote over its code, or one library took the place of another. When a site runs that
 * excludes an earlier one, the generation of the code goes up, and announcements that were made in
 * an older generation are void. A thread therefore needs to compare only one number to see that its
 * announcements are void, and a run costs one lookup.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/vec.h"

struct memtrace_site {
	const struct ptd_block *block; /* borrowed */
	uint64_t base;
	uint64_t generation; /* the last one in which no other site contradicted this one */
	uint32_t next;       /* index of the next site with the same key, plus 1; 0: none */
};

struct memtrace_code {
	uint64_t serial; /* differs from that of every code that was freed before */
	uint32_t pid;    /* of the process that ran it first */
	uint64_t generation;
	size_t n_insns; /* instructions in all sites; the memory used grows in proportion */
	VEC(struct memtrace_site) sites;
	struct map by_key; /* block and base → index of a site */
	struct map by_pc;  /* pc → index of the site that claimed it last << 16 | instruction */
};

/* Return: code without sites and with the number @serial; NULL if there is no memory. */
struct memtrace_code *memtrace_code_new(uint64_t serial);
struct memtrace_code *memtrace_code_free(struct memtrace_code *code);

/*
 * Find or add the site of @block at @base, which runs now. Afterwards code->generation is the
 * generation to which the bytes of this site belong.
 *
 * @ret_site is the index of the site; indices are dense and begin at 0.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int memtrace_code_site(struct memtrace_code *code, const struct ptd_block *block,
				    uint64_t base, uint32_t *ret_site);

/*
 * Find the site of @block at @base, if memtrace_code_site() would change nothing.
 *
 * Return: false if there is none, or if it may contradict other sites.
 */
bool memtrace_code_find(const struct memtrace_code *code, const struct ptd_block *block,
			uint64_t base, uint32_t *ret_site);

DEFINE_CLEANUP(struct memtrace_code *, memtrace_code_free);
