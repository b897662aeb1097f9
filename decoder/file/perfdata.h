/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf data
 *
 * Reads a trace from a perf.data file, in the file form (header, attrs, data section,
 * features) or in the pipe form (records only); and from the files beside it, if several threads
 * recorded.
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/file/perfstream.h"
#include "decoder/file/reading.h"
#include "decoder/trace/trace.h"

/*
 * Read a trace. files[0] is the perf.data file. The others have more records if that file states
 * that it is one of several; otherwise they are ignored. PT stays in the files, whose descriptors
 * have to be open as long as the trace is used. The trace borrows @reading, which may be NULL.
 *
 * Return: 0; -EBADMSG if it is no perf.data file, or damaged; -EFBIG if a section is larger than
 *         any recording's; -ENODATA if the recording was not finished or holds no Intel PT;
 *         -EOPNOTSUPP for what is not supported; -ESTALE if a file became shorter meanwhile, or
 *         another negative errno if it cannot be read; -ECANCELED; -ENOMEM; each with
 *         @reterr_message, which the caller frees.
 */
_must_check_ int perfdata_parse(const struct perfstream_file *files, size_t n_files,
				struct reading *reading, struct trace **ret_trace,
				char **reterr_message);
