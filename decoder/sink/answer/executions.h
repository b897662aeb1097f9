/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Executions
 *
 * The executions of one function, as of one that serves a request: how long they took, which took
 * longest, and what each function called meanwhile had of it in the slowest one and in a usual one.
 *
 * An execution is a call of the function while no other call of it is open on the stack. It counts
 * if it was seen from its beginning to its end. Which one is in the middle is known only at the
 * end; so of the executions that took equally long, by the buckets of a histogram, the first is
 * kept. The memory depends on the range of the durations and not on the number of executions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/answer/histogram.h"
#include "decoder/sink/openstacks.h"
#include "ptd/calls.h"
#include "util/map.h"
#include "util/vec.h"

#define EXECUTIONS_WORST 10
#define EXECUTION_PARTS  512 /* functions that are kept of an execution; others are one part */

/* What a function had of an execution. */
struct execution_part {
	const struct ptd_function *function; /* NULL: functions that have no part of their own */
	uint64_t n_calls;
	uint64_t t_self, n_insns_self;
	uint64_t t_total, n_insns_total; /* a function that calls itself counts once */
	uint32_t n_open;
};

struct execution {
	uint64_t number; /* in the order in which they began, from 1 */
	uint32_t pid, tid;
	const char *comm; /* the thread's name; borrowed from the call layer */
	uint64_t t;       /* when it began */
	uint64_t duration, n_insns;

	/* The function itself is the first. Owned. */
	struct execution_part *parts;
	size_t n_parts;
};

/* An execution that goes on, on one stack. */
struct running {
	bool is_running;
	size_t level; /* functions that are open on the stack below it */
	struct execution execution;
	size_t n_capacity; /* of its parts */
	struct map by_id;  /* id of a function → index of its part; of more than a few parts */
};

struct executions {
	/* The caller sets these. */
	const char *name; /* of the function; borrowed */
	bool has_time;    /* else the one with more instructions is the slower */

	uint64_t n;         /* executions that began */
	uint64_t n_partial; /* of these, those that were not seen as a whole */
	struct histogram t, n_insns;
	struct execution worst[EXECUTIONS_WORST]; /* the slowest first; only that has parts */
	size_t n_worst;
	struct execution *usual[HISTOGRAM_BUCKETS]; /* the first of each bucket; owned, or NULL */

	struct open_stacks stacks;
	VEC(struct running) running;         /* by number of the stack */
	VEC(uint8_t) matches;                /* by id of a function: whether it is the one sought */
	const struct ptd_function *function; /* the one found last; NULL: none; borrowed */
};

void executions_deinit(struct executions *executions);

/* Take the calls of a batch. Return: 0 or -ENOMEM. */
_must_check_ int executions_add(struct executions *executions, const struct ptd_call_batch *batch);

/* Return: the execution that is kept of those in the middle; NULL if there is none. */
const struct execution *executions_median(const struct executions *executions);

/*
 * Return: whether @name is that of a function which a user calls @wanted: the parameters, which
 *         names of C++ have, may be left out.
 */
bool executions_name_is(const char *name, const char *wanted);
