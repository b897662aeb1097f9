/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perffile
 *
 * Writes the perf.data file of a snapshot: the two attrs, the records that say how the PT is to be
 * read, whatever records and PT bytes it is given, and the features. perf and ptdecode read it; it
 * is exactly what `perf record --snapshot -e intel_pt//` would have written, but for what is not
 * known here.
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

/* What the features say. All is borrowed for the call. */
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
 * Make the file @name in @dir_fd and write what comes before the records.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int perffile_new(int dir_fd, const char *name, const struct source_facts *facts,
			      struct perffile **ret_file);

/* Write whole records, with trailers of RECORD_ID_PT or RECORD_ID_SIDEBAND. An error shows in
 * perffile_finish(). */
void perffile_write(struct perffile *file, const void *records, size_t size);

/*
 * Write the PT of one CPU.
 *
 * @offset: where its first byte is in the CPU's endless stream.
 * @reference: a TSC near the last byte; must not be 0, or perf ignores every TSC packet.
 *
 * Return: 0, or -ENOMEM. A failed write shows in perffile_finish().
 */
_must_check_ int perffile_write_aux(struct perffile *file, uint32_t cpu, uint64_t offset,
				    uint64_t reference, const void *bytes, size_t size);

/*
 * End the records, write the features and complete the header.
 *
 * Return: 0, or negative errno: the file is then useless.
 */
_must_check_ int perffile_finish(struct perffile *file, const struct perffile_about *about);

struct perffile *perffile_free(struct perffile *file);

DEFINE_CLEANUP(struct perffile *, perffile_free);
