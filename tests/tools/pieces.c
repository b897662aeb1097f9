/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * pieces [-e ENGINE] [-r NS] SNAPSHOT LOGDIR: decodes a snapshot of programs that went on running,
 * and looks for each thread's instructions in the ground truth that the plugin logged: what was
 * decoded of each stay on a CPU must be one piece of the log, and the pieces in its order. From the
 * moment on that the rings of all CPUs reach back to, nothing may be missing between them, and there
 * may be no gap.
 *
 * -r says when the snapshot was asked for (CLOCK_MONOTONIC): every CPU whose owner flushed for it
 * must have PT of a later time.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/util/vec.h"
#include "ptd/decode.h"
#include "tests/lib/emulog.h"
#include "tests/lib/piece.h"

#define CPUS_MAX 256

struct thread {
	uint32_t pid, tid;
	struct pieces pieces;
	uint64_t n;
	uint64_t slice;
	bool has_slice;
};

/* What the manifest says of a CPU, and when its first instruction that was decoded ran. */
struct cpu {
	uint64_t bytes, head;
	bool cut;
	char end[16];
	uint64_t first;
};

static VEC(struct thread) threads;
static struct cpu cpus[CPUS_MAX];
static uint64_t n_gaps, last_gap;
static bool wrong;

static struct thread *thread_of(uint32_t pid, uint32_t tid)
{
	for (size_t i = 0; i < threads.n; i++)
		if (threads.items[i].pid == pid && threads.items[i].tid == tid)
			return &threads.items[i];
	if (vec_push(&threads, { .pid = pid, .tid = tid }) < 0)
		error(1, ENOMEM, "threads");
	return &threads.items[threads.n - 1];
}

static void read_manifest(const char *snapshot)
{
	char path[4096], line[4096], value[128];
	unsigned cpu;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/manifest", snapshot);
	f = fopen(path, "re");
	if (!f)
		error(1, errno, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "cpu.%u.bytes=%127s", &cpu, value) == 2 && cpu < CPUS_MAX)
			cpus[cpu].bytes = strtoull(value, NULL, 10);
		else if (sscanf(line, "cpu.%u.head=%127s", &cpu, value) == 2 && cpu < CPUS_MAX)
			cpus[cpu].head = strtoull(value, NULL, 10);
		else if (sscanf(line, "cpu.%u.switch_complete=%127s", &cpu, value) == 2 &&
			 cpu < CPUS_MAX)
			cpus[cpu].cut = strcmp(value, "no") == 0;
		else if (sscanf(line, "cpu.%u.end=%15s", &cpu, value) == 2 && cpu < CPUS_MAX)
			(void)snprintf(cpus[cpu].end, sizeof(cpus[cpu].end), "%.15s", value);
	}
	fclose(f);
}

static void note_gap(const struct ptd_batch *batch, const struct ptd_mark *mark)
{
	if (mark->t > last_gap)
		last_gap = mark->t;
	n_gaps++;
	printf("gap: %s, cpu %" PRIu32 " at %" PRIu64 ", offset %" PRIu64 ", ip %#" PRIx64
	       ", %" PRIu64 " bytes\n",
	       ptd_gap_reason_name(mark->reason), batch->slice->cpu, mark->t, mark->offset,
	       mark->ip, mark->n_bytes);
}

static void begin(struct thread *t, const struct ptd_slice *slice, uint64_t time)
{
	if (pieces_begin(&t->pieces, time) < 0)
		error(1, ENOMEM, "pieces");
	t->has_slice = true;
	t->slice = slice->id;
}

static void take(const struct ptd_batch *batch)
{
	const struct ptd_slice *slice = batch->slice;
	struct thread *t = NULL;
	size_t m = 0;

	for (size_t i = 0; i <= batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];

		for (; m < batch->n_marks && batch->marks[m].run <= i; m++) {
			if (batch->marks[m].kind != PTD_MARK_GAP)
				continue;
			note_gap(batch, &batch->marks[m]);
			if (slice->tid != PTD_ID_UNKNOWN && slice->tid != 0)
				thread_of(slice->pid, slice->tid)->has_slice = false;
		}
		if (i == batch->n_runs)
			break;
		t = thread_of(slice->pid, slice->tid);
		if (!t->has_slice || t->slice != slice->id)
			begin(t, slice, run->t);
		if (slice->cpu < CPUS_MAX && cpus[slice->cpu].first == 0)
			cpus[slice->cpu].first = run->t;
		for (size_t k = 0; k < run->n; k++)
			if (pieces_add(&t->pieces, ptd_run_ip(run, k)) < 0)
				error(1, ENOMEM, "pieces");
		t->n += run->n;
	}
}

static void check_end(const struct ptd_cpu_stats *stats, uint64_t requested)
{
	const struct cpu *cpu = &cpus[stats->cpu];

	printf("cpu %" PRIu32 ": %" PRIu64 " of %" PRIu64 " bytes, switches %s, %s", stats->cpu,
	       cpu->bytes, cpu->head, cpu->cut ? "cut" : "complete", cpu->end);
	if (requested > 0)
		printf(", ends %+" PRId64 " us from the request",
		       ((int64_t)stats->t_last - (int64_t)requested) / 1000);
	if (requested > 0 && strcmp(cpu->end, "flushed") == 0 && stats->t_last < requested) {
		printf(": WRONG");
		wrong = true;
	}
	putchar('\n');
}

static void decode(const char *path, const char *engine, uint64_t requested)
{
	const struct ptd_options options = { .size = sizeof(options),
					     .input = path,
					     .engine = engine };
	const struct ptd_stats *stats;
	const struct ptd_batch *batch;
	struct ptd_decoder *d;
	char *message;
	int r;

	if (ptd_decoder_new(&options, &d, &message) < 0)
		error(1, 0, "%s", message);
	while ((r = ptd_decoder_next(d, &batch)) == 0)
		take(batch);
	if (r < 0)
		error(1, -r, "%s", path);
	stats = ptd_decoder_stats(d);
	for (size_t i = 0; i < stats->n_cpus; i++)
		if (stats->cpus[i].cpu < CPUS_MAX)
			check_end(&stats->cpus[i], requested);
	ptd_decoder_free(d);
}

/* From when on the rings of all CPUs hold everything. */
static uint64_t horizon(void)
{
	uint64_t t = 0;

	for (size_t i = 0; i < CPUS_MAX; i++)
		if ((cpus[i].head > cpus[i].bytes || cpus[i].cut) && cpus[i].first > t)
			t = cpus[i].first;
	return t;
}

static void find(struct thread *t, const char *dir, uint64_t from)
{
	struct emulog_insn logged;
	struct emulog log;
	int n_joined;
	char name[64];
	int r;

	for (size_t i = 1; i < t->pieces.list.n; i++) {
		const struct piece *p = &t->pieces.list.items[i];

		if (p->t0 < p[-1].t0) {
			printf("%" PRIu32 ".%" PRIu32 ": a piece of %" PRIu64
			       " comes after one of %" PRIu64 ": WRONG\n",
			       t->pid, t->tid, p->t0, p[-1].t0);
			wrong = true;
		}
	}
	n_joined = pieces_join(&t->pieces, from);
	if (n_joined < 0)
		error(1, ENOMEM, "pieces");
	(void)snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu32, t->pid, t->tid);
	r = emulog_init(&log, dir, name);
	if (r < 0)
		error(1, -r, "%s/%s.log", dir, name);
	while (!pieces_found(&t->pieces) && (r = emulog_next(&log, &logged)) == 0)
		if (!logged.unreported && pieces_show(&t->pieces, logged.ip) < 0)
			error(1, ENOMEM, "pieces");
	if (r < 0)
		error(1, -r, "%s/%s.log", dir, name);
	emulog_deinit(&log);

	printf("%s: %" PRIu64 " instructions in %zu pieces, the last one of %d after the "
	       "horizon, %" PRIu64 " jumps",
	       name, t->n, t->pieces.list.n, n_joined, t->pieces.n_jumps);
	if (!pieces_found(&t->pieces)) {
		printf(", piece %zu (%zu instructions, at %" PRIu64 ") is not in the log: WRONG",
		       t->pieces.at, t->pieces.list.items[t->pieces.at].ips.n,
		       t->pieces.list.items[t->pieces.at].t0);
		wrong = true;
	}
	putchar('\n');
	pieces_deinit(&t->pieces);
}

int main(int argc, char **argv)
{
	uint64_t n = 0, requested = 0, from;
	const char *engine = NULL;
	int option;

	while ((option = getopt(argc, argv, "e:r:")) != -1) {
		if (option == 'e')
			engine = optarg;
		else if (option == 'r')
			requested = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	if (argc - optind != 2)
		error(2, 0, "usage: pieces [-e ENGINE] [-r NS] SNAPSHOT LOGDIR");

	read_manifest(argv[optind]);
	decode(argv[optind], engine, requested);
	from = horizon();
	if (last_gap > from) {
		printf("a gap at %" PRIu64 " is behind the horizon, %" PRIu64 ": WRONG\n", last_gap,
		       from);
		wrong = true;
	}
	for (size_t i = 0; i < threads.n; i++) {
		n += threads.items[i].n;
		find(&threads.items[i], argv[optind + 1], from);
	}
	printf("%zu threads, %" PRIu64 " instructions, %" PRIu64 " gaps%s\n", threads.n, n, n_gaps,
	       wrong ? ": WRONG" : "");
	vec_deinit(&threads);
	return wrong || n == 0;
}
