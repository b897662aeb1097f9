/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace calls
 *
 * Which functions a drmemtrace file marks at their calls and returns, so that DynamoRIO's func_view
 * prints the calls as a tree; and the file aux/funclist.log, which names these functions. What
 * calls and returns there are is decided by the call layer (ptd/calls.h).
 *
 * A function is marked if it was called, or entered by a tail call. One that was entered otherwise
 * (a signal handler; one that was open when the trace began) has no marker, because DynamoRIO
 * allows them behind branches only. A function that is left without a branch, such as by a gap, is
 * marked as left behind the next one, so that the markers always nest.
 *
 * A line of funclist.log is "id,0,address,file!name". Fields end at commas, so that those in a name
 * are replaced by semicolons.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/openstacks.h"
#include "decoder/sink/sink.h"
#include "ptd/calls.h"
#include "util/vec.h"

/* A function that was entered or left. */
struct memtrace_call {
	uint32_t function; /* id in funclist.log */
	bool is_enter;
};

struct memtrace_call_list {
	VEC(struct memtrace_call) items;
};

struct memtrace_calls {
	struct ptd_calls *layer; /* NULL: no function is marked */
	char *pattern;           /* of the names of functions that are marked; NULL: all; owned */
	bool with_kernel;        /* those of the kernel are marked, too */
	VEC(uint8_t) chosen;     /* by id of the function: whether it is marked, and was */
	struct open_stacks stacks;
	const struct ptd_call_batch *found; /* the calls that come next, from @next on; or NULL */
	size_t next;
};

/*
 * Make the layer. @pattern is one of fnmatch(3), "none", or NULL: all functions.
 *
 * Return: 0, or negative errno. The functions below do the same.
 */
_must_check_ int memtrace_calls_init(struct memtrace_calls *calls, const struct ptd_info *info,
				     const char *pattern, bool with_kernel);
void memtrace_calls_deinit(struct memtrace_calls *calls);

/* Find the calls in @batch, which is borrowed until memtrace_calls_take() got all of them. */
_must_check_ int memtrace_calls_begin(struct memtrace_calls *calls, const struct ptd_batch *batch);

/*
 * Add to @list the calls to be marked that stand before run @run or earlier. @ret_next is the run
 * before which the next ones stand, SIZE_MAX if there are none.
 */
_must_check_ int memtrace_calls_take(struct memtrace_calls *calls, size_t run,
				     struct memtrace_call_list *list, size_t *ret_next);

/* Write aux/funclist.log in the directory @config->fd. */
_must_check_ int memtrace_calls_finish(struct memtrace_calls *calls,
				       const struct sink_config *config);
