/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Branch source
 *
 * A source of batches (decoder/util/batchsource.h) that is fed with the branches that perf decoded,
 * in the order in which perf gives them: each CPU's in the order of time. The caller adds branches
 * until the source is full, then takes the batches, and adds on.
 *
 * Perf does not give its errors to a dlfilter. Where tracing begins although it did not end before,
 * or a branch is not where the one before it leads to, something was lost: that is a gap.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/buildid.h"

struct batchsource;
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

struct branch {
	uint32_t cpu; /* UINT32_MAX: not known */
	uint32_t pid, tid;
	const char *comm; /* of the thread; NULL: not known */
	uint64_t t;
	uint64_t from;          /* address of the branch; 0: tracing begins */
	uint64_t to;            /* where it leads to; 0: tracing ends */
	bool is_async;          /* the flow was interrupted before the instruction at @from */
	bool aborts;            /* the same, by the abort of a transaction */
	struct branch_place at; /* what is known of @from, if that is not 0 */
};

enum {
	BRANCHSOURCE_FULL = 1, /* the batch must be taken first */
};

/* Make a source; @objects and @resolver are borrowed. Return: 0 or -ENOMEM. */
_must_check_ int branchsource_new(struct objects *objects, struct resolver *resolver,
				  struct batchsource **ret_source);

/* Add a branch, whose code @memory has. Return: 0; BRANCHSOURCE_FULL: it was not added; -ENOMEM. */
_must_check_ int branchsource_add(struct batchsource *source, const struct branch *branch,
				  const struct branch_memory *memory);
