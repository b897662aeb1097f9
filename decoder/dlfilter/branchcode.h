/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Branch code
 *
 * The code between two branches that perf decoded. Perf says only where each branch led from and
 * to; all instructions in between, which follow one another in memory, executed, too. They are
 * found once for each pair of addresses of a file, and come out as runs of blocks.
 *
 * Bytes are as perf has them. Names are those of the file itself, where it can be read, so that
 * they are the same as for a recording that ptdecode decodes; and else perf's, as of the kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/buildid.h"

struct objects;
struct resolver;

/* What perf knows of an address. Strings are valid until perf is asked again. */
struct branch_place {
	const char *object;     /* the path or name of what is mapped there; NULL: not known */
	struct buildid buildid; /* of that */
	uint64_t address;       /* in it: of a file the offset */
	const char *symbol;     /* NULL: none */
	uint64_t symbol_start;  /* in the object, as @address is */
	uint64_t symbol_end;
	uint8_t mode; /* 32 or 64 */
};

/* How to ask perf. */
struct branch_memory {
	/* Return: whether anything is known of @ip. */
	bool (*place)(void *userdata, uint64_t ip, struct branch_place *ret_place);

	/* Return: how many of the @size bytes at @ip could be read. */
	size_t (*read)(void *userdata, uint64_t ip, void *ret_bytes, size_t size);

	void *userdata;
};

/* More code than this is not between two branches. */
#define BRANCHCODE_BYTES_MAX (UINT32_C(1) << 20)

/* More pairs of addresses are forgotten, and found anew. */
#define BRANCHCODE_WAYS_MAX (UINT32_C(1) << 22)

enum {
	BRANCHCODE_UNKNOWN = 1, /* no bytes are known there */
	BRANCHCODE_ODD,         /* the instructions do not lead from the one address to the other */
};

/* The code from one address to another. */
struct branch_way {
	struct ptd_run *runs; /* the base of each is relative to the first address */
	uint32_t n_runs;
	uint32_t n_insns;
	uint8_t last_size; /* of the last instruction */
};

struct branchcode;

/* Make an empty collection; @objects and @resolver are borrowed. Return: 0 or -ENOMEM. */
_must_check_ int branchcode_new(struct objects *objects, struct resolver *resolver,
				struct branchcode **ret_code);
struct branchcode *branchcode_free(struct branchcode *code);

/*
 * Find the way from @start to the instruction at @end, which is on the way if @with_end. @at is
 * what @memory knows of @end.
 *
 * Return: 0 and @ret_way, which is valid until the next call; BRANCHCODE_UNKNOWN; BRANCHCODE_ODD;
 *         or -ENOMEM.
 */
_must_check_ int branchcode_find(struct branchcode *code, const struct branch_memory *memory,
				 uint64_t start, uint64_t end, bool with_end,
				 const struct branch_place *at, const struct branch_way **ret_way);

/* Return: all symbols, by id, as struct ptd_batch has them. */
const struct ptd_symbol *const *branchcode_symbols(const struct branchcode *code, size_t *ret_n);
