/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf data
 *
 * Reads the bytes of a perf.data file: the file form (header, attrs, data section, features) and
 * the pipe form (records only); and of those that lie beside it if several threads recorded.
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/file/perfstream.h"
#include "decoder/trace/trace.h"

/*
 * Read a trace: files[0] is the perf.data, and the others, if it says that it is one of several,
 * have more records; if it does not, they are ignored. The trace points into the files' bytes,
 * which must outlive it; @maps (as many, or NULL) are the mappings that they are in, and become the
 * trace's in any case.
 *
 * Return: 0; -EBADMSG if they are no perf.data or a damaged one; -ENODATA if the recording was not
 *         finished or holds no Intel PT; -EOPNOTSUPP for what is not supported; -ENOMEM; each with
 *         @reterr_message, which the caller frees.
 */
_must_check_ int perfdata_parse_files(const struct perfstream_file *files, size_t n_files,
				      struct mapfile *maps, struct trace **ret_trace,
				      char **reterr_message);

/* The same of the @size bytes of one file that messages call @name, which are the caller's. */
_must_check_ int perfdata_parse(const void *bytes, size_t size, const char *name,
				struct trace **ret_trace, char **reterr_message);
