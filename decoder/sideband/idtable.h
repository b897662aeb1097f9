/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Id table
 *
 * The table of build-ids that perf writes at the end of a recording, by path. It is used for
 * mappings whose records state no build-id.
 */

#include "base/base.h"
#include "decoder/trace/trace.h"
#include "util/buildid.h"
#include "util/vec.h"

struct idtable_entry {
	const char *path; /* borrowed from the trace */
	struct buildid id;
};

struct idtable {
	VEC(struct idtable_entry) list; /* by path */
};

/*
 * Collect the build-ids of user space in the records of @trace, which must outlive the table.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int idtable_init(struct idtable *table, const struct trace *trace);
void idtable_deinit(struct idtable *table);

/* Return: the build-id of the file that was mapped by @path; NULL if it is not in the table. */
const struct buildid *idtable_find(const struct idtable *table, const char *path);
