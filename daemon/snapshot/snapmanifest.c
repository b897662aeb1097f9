/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/snapmanifest.h"

#include <inttypes.h>
#include <sys/utsname.h>
#include <time.h>

#include "daemon/proc/caller.h"
#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/cpucopy.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/source/source.h"
#include "ptd/snapshot.h"

/* UTC. */
static void print_time(FILE *f, const char *key, uint64_t realtime_ns)
{
	const time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(f, "%s=%s.%06" PRIu64 "Z\n", key, text, realtime_ns / 1000 % 1000000);
}

static void write_amounts(const struct snapmanifest *m, FILE *f)
{
	fprintf(f, "bytes=%" PRIu64 "\npt_bytes=%" PRIu64 "\n", m->result->bytes,
		m->result->bytes_pt);
	fprintf(f, PTD_MANIFEST_DROPPED "=%" PRIu64 "\n", m->bytes_dropped);
	fprintf(f, PTD_MANIFEST_OVERWRITTEN "=%" PRIu64 "\n", m->result->bytes_overwritten);
	if (m->complete_since == 0)
		return;
	print_time(f, "complete_since", m->complete_since - m->moment->ns + m->moment->realtime_ns);
	fprintf(f, PTD_MANIFEST_COMPLETE_SINCE "=%" PRIu64 "\n", m->complete_since);
}

void snapmanifest_write(const struct snapmanifest *m, FILE *f)
{
	const struct snapshot_request *q = m->request;
	const struct source_facts *facts = m->facts;
	struct utsname host = {};

	(void)uname(&host);
	fprintf(f, PTD_MANIFEST_FORMAT "=" PTD_SNAPSHOT_FORMAT "\n");
	fprintf(f, "id=%s\n", q->id);
	print_time(f, "created", m->moment->realtime_ns);
	fprintf(f, PTD_MANIFEST_CLOCK "=%" PRIu64 "\n", m->moment->ns);
	fprintf(f, PTD_MANIFEST_REALTIME_OFFSET "=%" PRId64 "\n",
		(int64_t)(m->moment->realtime_ns - m->moment->ns));
	fprintf(f, PTD_MANIFEST_MONOTONIC_OFFSET "=%" PRId64 "\n",
		(int64_t)(m->moment->ns - m->moment->monotonic_ns));
	fprintf(f, "host=%s\nkernel=%s\nmachine=%s\n", host.nodename, host.release, host.machine);
	fprintf(f, "recorder=ptd %s\nsource=%s\ncpuid=%s\n", PTD_VERSION, facts->name,
		facts->cpuid);
	fprintf(f,
		PTD_MANIFEST_TAKEN_BY_UID "=%" PRIuMAX "\ntaken_by_pid=%" PRIdMAX
					  "\ntaken_by_comm=%s\n",
		(uintmax_t)q->caller->uid, (intmax_t)q->caller->pid, q->caller->comm);
	fprintf(f, "pt_config=0x%" PRIx64 "\n", facts->attr_config);
	write_amounts(m, f);
	fprintf(f, PTD_MANIFEST_COMPLETE_UNTIL "=%" PRIu64 "\n", m->moment->complete_until_ns);
	fprintf(f, "objects=%" PRIu32 "\nobjects_missing=%" PRIu32 "\n", m->result->n_objects,
		m->result->n_missing);
	if (m->scope->started_ns > 0)
		fprintf(f, PTD_MANIFEST_COMMAND_COMPLETE "=%s\n",
			m->result->complete_since_ns > m->scope->started_ns ? "no" : "yes");
	scope_write_manifest(m->scope, m->ran, (int64_t)(m->moment->ns - m->moment->monotonic_ns),
			     f);
	fprintf(f, PTD_MANIFEST_SIDEBAND_LOST "=%" PRIu64 "\n", m->known->sideband_lost);
	if (m->known->taken_over_ns > 0)
		fprintf(f, "taken_over_ns=%" PRIu64 "\ncode_lost_bytes=%" PRIu64 "\n",
			m->known->taken_over_ns + m->moment->ns - m->moment->monotonic_ns,
			m->known->code_lost_bytes);
	(void)fwrite(m->notes, 1, m->notes_size, f);
	fprintf(f, PTD_MANIFEST_SIDEBAND_SINCE "=%" PRIu64 "\n", m->known->tasks->since_ns);
	for (size_t i = 0; i < m->known->tasks->n_cuts; i++) {
		const struct sideband_cut *cut = &m->known->tasks->cuts[i];

		fprintf(f,
			PTD_MANIFEST_SIDEBAND_SINCE ".%u=%" PRIu64 "\nsideband_dropped.%u=%" PRIu64
						    "\n",
			(unsigned)cut->uid, cut->since_ns, (unsigned)cut->uid, cut->n_dropped);
	}
	fprintf(f, "cpus=%" PRIu32 "\n", m->result->n_cpus);
	for (uint32_t i = 0; i < q->source->n_cpus; i++)
		cpucopy_write_manifest(&m->cpus[i], i, f);
}
