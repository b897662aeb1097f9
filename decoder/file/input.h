/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Input
 *
 * Opens what the user names as the input of a decode, and reads the trace that is in it: a
 * perf.data file, a directory of them, a snapshot of ptd, a pipe, a bare PT stream.
 */

#include <stdbool.h>

#include "base/base.h"
#include "decoder/file/reading.h"
#include "decoder/trace/trace.h"

/*
 * Read the perf.data file or directory at @path. A path of "-" is standard input; the path may also
 * be that of a FIFO. If a directory has a manifest (it is a snapshot of ptd), the hashes in
 * SHA256SUMS are checked first, unless @force. @reading, which may be NULL, is borrowed by the
 * trace.
 *
 * Return: 0; or negative errno and @reterr_message, a text for the user that names the file, the
 *         offset and what was expected, which the caller frees.
 */
_must_check_ int input_open(const char *path, bool force, struct reading *reading,
			    struct trace **ret_trace, char **reterr_message);

/*
 * Make a trace of the PT packets in the file @path, which has nothing else: one queue, of CPU 0,
 * without sideband records.
 *
 * Return: as above.
 */
_must_check_ int input_open_bare(const char *path, struct reading *reading,
				 struct trace **ret_trace, char **reterr_message);
