/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/estimate.h"

#include "base/cursor.h"
#include "daemon/objects/codestore.h"
#include "daemon/objects/jitfile.h"
#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/source/source.h"

#define BLOCK_SIZE  4096u
#define FILES_MIN   32u /* with a manifest, lists of objects, and the like */
#define KERNEL_SIZE (UINT64_C(48) << 20)

/* Memory that may be kept, zeros or not, or the code that ran. */
static uint64_t estimate_memory(const struct snapshot_request *request,
				const struct snapshot_known *known)
{
	const struct sideband_view *tasks = known->tasks;
	uint64_t bytes = known->code ? codestore_size(known->code) : 0;

	for (size_t i = 0; !known->code && i < tasks->n_ranges; i++)
		bytes += tasks->ranges[i].vdso ? 0 : tasks->ranges[i].size;
	return bytes < request->mem_max ? bytes : request->mem_max;
}

static uint64_t estimate_jitfiles(const struct snapshot_request *request,
				  const struct snapshot_known *known)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < known->n_jitfiles; i++)
		bytes += known->jitfiles[i].reason ? 0 : known->jitfiles[i].size;
	return bytes < request->jit_max ? bytes : request->jit_max;
}

struct diskuse_amount estimate_snapshot(const struct snapshot_request *request,
					const struct snapshot_known *known)
{
	/* An object is a link in a folder of its own, three deep. */
	const uint64_t n_files = FILES_MIN + 3 * known->n_objects + known->n_jitfiles;
	uint64_t bytes = known->ring_bytes;

	for (size_t i = 0; i < known->tasks->n_spans; i++)
		bytes += cursor_left(&known->tasks->spans[i]);
	bytes += estimate_memory(request, known) + estimate_jitfiles(request, known);
	bytes += request->source->facts.kernel ? KERNEL_SIZE : 0;
	return (struct diskuse_amount){
		.bytes = bytes + n_files * BLOCK_SIZE,
		.inodes = n_files + known->tasks->n_ranges,
	};
}
