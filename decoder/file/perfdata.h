/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf data
 *
 * Reads the bytes of one perf.data file: the file form (header, attrs, data section, features) and
 * the pipe form (records only).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/file/trace.h"

/*
 * Read the @size bytes of a file that messages call @name. The trace points into @bytes, which must
 * outlive it.
 *
 * Return: 0; -EBADMSG if they are no perf.data or a damaged one; -ENODATA if the recording was not
 *         finished or holds no Intel PT; -EOPNOTSUPP for what is not supported; -ENOMEM; each with
 *         @reterr_message, which the caller frees.
 */
_must_check_ int perfdata_parse(const void *bytes, size_t size, const char *name,
				struct trace **ret_trace, char **reterr_message);
