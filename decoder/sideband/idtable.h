/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Id table
 *
 * The build-ids that perf wrote at the end of a recording, for files whose mappings do not state
 * theirs.
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
 * Collect those of the records of @trace that are of user space; it must outlive the table.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int idtable_init(struct idtable *table, const struct trace *trace);
void idtable_deinit(struct idtable *table);

/* Return: the build-id of the file mapped as @path, NULL if there is none. */
const struct buildid *idtable_find(const struct idtable *table, const char *path);
