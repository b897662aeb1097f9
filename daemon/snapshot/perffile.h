/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf file
 *
 * Writes the perf.data file of a snapshot: the attrs of PT, of the other records and, if the source
 * gives events, of two tracepoints; the records that say how the PT is to be
 * read, the records and PT that it is given, and the features. perf and ptdecode read it. It is
 * what `perf record --snapshot -e intel_pt//` would have written, except for what ptd does not
 * know. One thread uses it.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct buildid;
struct perffile;
struct source_facts;

struct perffile_object {
	const char *path;
	const struct buildid *build_id;
};

/* What the features say. All of it is borrowed for the call. */
struct perffile_about {
	const char *host;
	const char *release; /* of the kernel */
	const char *machine; /* "x86_64" */
	const char *version; /* of the writer */
	const char *cpuid;
	uint32_t n_cpus;
	uint64_t time_first, time_last; /* of the records */
	const struct perffile_object *objects;
	size_t n_objects;
};

/*
 * Make the file @name in the folder @dir_fd, and write what comes before the records.
 *
 * @facts: borrowed until the file is freed
 *
 * Return: 0, or negative errno.
 */
_must_check_ int perffile_new(int dir_fd, const char *name, const struct source_facts *facts,
			      struct perffile **ret_file);

/* Write whole records, whose trailers have the id RECORD_ID_PT or RECORD_ID_SIDEBAND, or samples of
 * the tracepoints. If a write fails, perffile_finish() says so. */
void perffile_write(struct perffile *file, const void *records, size_t size);

/*
 * Write the PT of one CPU.
 *
 * @offset: running count of the CPU's bytes at which @bytes begin
 * @reference: a TSC near the last byte. It must not be 0, or perf ignores every TSC packet.
 *
 * Return: 0, or -ENOMEM. If a write fails, perffile_finish() says so.
 */
_must_check_ int perffile_write_aux(struct perffile *file, uint32_t cpu, uint64_t offset,
				    uint64_t reference, const void *bytes, size_t size);

/*
 * End the records, write the features and complete the header.
 *
 * Return: 0; or negative errno, also of a write before: the file is useless then.
 */
_must_check_ int perffile_finish(struct perffile *file, const struct perffile_about *about);

struct perffile *perffile_free(struct perffile *file);

DEFINE_CLEANUP(struct perffile *, perffile_free);
