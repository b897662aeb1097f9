/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf data
 *
 * Reads a trace from the bytes of a perf.data file, in the file form (header, attrs, data section,
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
 * that it is one of several; otherwise they are ignored. The trace points into the bytes of the
 * files, which must outlive it. @maps, as many, are the mappings that have these bytes, or NULL;
 * they become the trace's in any case. The trace borrows @reading, which may be NULL.
 *
 * Return: 0; -EBADMSG if it is no perf.data file, or damaged; -ENODATA if the recording was not
 *         finished or holds no Intel PT; -EOPNOTSUPP for what is not supported; -ECANCELED;
 *         -ENOMEM; each with @reterr_message, which the caller frees.
 */
_must_check_ int perfdata_parse_files(const struct perfstream_file *files, size_t n_files,
				      struct mapfile *maps, struct reading *reading,
				      struct trace **ret_trace, char **reterr_message);

/*
 * The same for one file of @size bytes, which is called @name in messages and belongs to the
 * caller.
 */
_must_check_ int perfdata_parse(const void *bytes, size_t size, const char *name,
				struct trace **ret_trace, char **reterr_message);
