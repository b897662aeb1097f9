/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ranked executions
 *
 * The executions of one function in one stream, as runs that are ranked (rank.h): the slow ones are
 * bad. These are those behind the largest step in what the slower half of them took, or if there is
 * none, the slowest tenth. If the times do not tell executions apart, their instructions do.
 *
 * An execution is a call, seen from its beginning to its end, while no other call of the function
 * is open on its stack. The stream is taken twice: to find out how long each execution took, and to
 * count what was seen in it.
 */

#include "base/base.h"
#include "ptd/record.h"

#define RANKEXEC_PASSES 2

struct ptd_decoder;
struct rank;
struct rankexec;

/* @function is borrowed. Return: 0 or -ENOMEM. */
_must_check_ int rankexec_new(struct rank *rank, const char *function,
			      struct rankexec **ret_rankexec);
struct rankexec *rankexec_free(struct rankexec *rankexec);

/* Begin the next pass over the stream, from the beginning. Return: 0 or -ENOMEM. */
_must_check_ int rankexec_begin(struct rankexec *rankexec, struct ptd_decoder *decoder);

/* Take the next batch. Return: 0 or -ENOMEM. */
_must_check_ int rankexec_batch(struct rankexec *rankexec, const struct ptd_batch *batch);

/* The pass is over; the decoder still exists. Return: 0 or -ENOMEM. */
_must_check_ int rankexec_end(struct rankexec *rankexec);

DEFINE_CLEANUP(struct rankexec *, rankexec_free);
