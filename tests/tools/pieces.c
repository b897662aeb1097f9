/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * pieces [-e ENGINE] [-l] [-r NS] SNAPSHOT LOGDIR: decodes a snapshot of programs that went on
 * running, and looks for each thread's instructions in the ground truth that the plugin logged:
 * what was decoded of each stay on a CPU must be one piece of the log, and the pieces in its order.
 * Nothing may be missing between two stays that follow each other, as the switch records tell; nor,
 * if not all of those are left, from the moment on that the rings of all CPUs reach back to. The
 * rings end one after the other: behind the first end something may be missing.
 * Nowhere but before the first instruction of a CPU may there be a gap, except where the recorder
 * itself says that it had no CPU left for a thread that went on.
 *
 * -l: packets were lost on the way. There must be gaps, then, and what is between them is looked
 * for.
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
#include "ptd/decode.h"
#include "ptd/snapshot.h"
#include "tests/lib/decoding.h"
#include "tests/lib/emulog.h"
#include "tests/lib/piece.h"
#include "tests/lib/stays.h"
#include "util/vec.h"

#define CPUS_MAX 256

struct thread {
	uint32_t pid, tid;
	struct pieces pieces;
	uint64_t n;
	uint64_t slice;
	bool has_slice;
	bool torn; /* by a gap */
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
static uint64_t complete_until = UINT64_MAX; /* the first end of a ring */
static struct stays stays;
static uint64_t n_gaps, n_overflows, last_gap;
static bool lossy;
static size_t n_pieces, n_joints;
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
	/* Of perf's there is none; its rings are not known to have wrapped, and end after its
	 * program. */
	if (!f && errno != ENOTDIR)
		error(1, errno, "%s", path);
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, PTD_MANIFEST_COMPLETE_UNTIL "=%127s", value) == 1)
			complete_until = strtoull(value, NULL, 10);
		else if (sscanf(line, "cpu.%u.bytes=%127s", &cpu, value) == 2 && cpu < CPUS_MAX)
			cpus[cpu].bytes = strtoull(value, NULL, 10);
		else if (sscanf(line, "cpu.%u.head=%127s", &cpu, value) == 2 && cpu < CPUS_MAX)
			cpus[cpu].head = strtoull(value, NULL, 10);
		else if (sscanf(line, "cpu.%u.switch_complete=%127s", &cpu, value) == 2 &&
			 cpu < CPUS_MAX)
			cpus[cpu].cut = strcmp(value, "no") == 0;
		else if (sscanf(line, "cpu.%u.end=%15s", &cpu, value) == 2 && cpu < CPUS_MAX)
			(void)snprintf(cpus[cpu].end, sizeof(cpus[cpu].end), "%.15s", value);
	}
	if (f)
		fclose(f);
}

static void note_gap(const struct ptd_batch *batch, const struct ptd_mark *mark)
{
	const uint32_t cpu = batch->slice->cpu;
	const bool inside =
	    (cpu >= CPUS_MAX || cpus[cpu].first > 0) && !lossy && mark->reason != PTD_GAP_OVERFLOW;

	if (mark->t > last_gap)
		last_gap = mark->t;
	n_gaps++;
	n_overflows += mark->reason == PTD_GAP_OVERFLOW;
	wrong |= inside;
	printf("gap: %s, cpu %" PRIu32 " at %" PRIu64 ", offset %" PRIu64 ", ip %#" PRIx64
	       ", %" PRIu64 " bytes%s\n",
	       ptd_gap_reason_name(mark->reason), cpu, mark->t, mark->offset, mark->ip,
	       mark->n_bytes, inside ? ": WRONG" : "");
}

static void begin(struct thread *t, const struct ptd_slice *slice, uint64_t time)
{
	struct cpu *cpu = &cpus[slice->cpu % CPUS_MAX];
	/* There was a gap; or the ring's oldest bytes are overwritten. */
	const bool torn = t->torn || (cpu->first == 0 && (cpu->head > cpu->bytes || cpu->cut));

	if (pieces_begin(&t->pieces, time, slice->cpu, torn) < 0)
		error(1, ENOMEM, "pieces");
	t->has_slice = true;
	t->torn = false;
	t->slice = slice->id;
}

/* Kernel code, in the upper half of all addresses, is logged per CPU, as threads of process 0. */
static bool is_kernel(const struct ptd_run *run)
{
	return run->base >> 63;
}

/* What comes behind a gap need not follow what is before it, of whoever runs on the CPU. */
static void tear(const struct ptd_slice *slice)
{
	for (size_t i = 0; i < threads.n; i++) {
		struct thread *t = &threads.items[i];
		const bool kernel = t->pid == 0 && t->tid == slice->cpu + 1;

		if (kernel || (t->pid == slice->pid && t->tid == slice->tid)) {
			t->has_slice = false;
			t->torn = true;
		}
	}
}

static void take(const struct ptd_batch *batch)
{
	const struct ptd_slice *slice = batch->slice;
	size_t m = 0;

	for (size_t i = 0; i <= batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];
		struct thread *t;

		for (; m < batch->n_marks && batch->marks[m].run <= i; m++) {
			if (batch->marks[m].kind != PTD_MARK_GAP)
				continue;
			note_gap(batch, &batch->marks[m]);
			if (slice->tid != PTD_ID_UNKNOWN && slice->tid != 0)
				(void)thread_of(slice->pid, slice->tid);
			tear(slice);
		}
		if (i == batch->n_runs)
			break;
		t = is_kernel(run) ? thread_of(0, slice->cpu + 1)
				   : thread_of(slice->pid, slice->tid);
		if (!t->has_slice || (t->slice != slice->id && !is_kernel(run)))
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

	d = decoding_new(&options);
	while ((batch = decoding_next(d, path)))
		take(batch);
	stats = ptd_decoder_stats(d);
	for (size_t i = 0; i < stats->n_cpus; i++)
		if (stats->cpus[i].cpu < CPUS_MAX)
			check_end(&stats->cpus[i], requested);
	ptd_decoder_free(d);
}

/* From when on the rings of all CPUs hold everything; never, if all of one was overwritten while it
 * was copied. */
static uint64_t horizon(void)
{
	uint64_t t = 0;

	for (size_t i = 0; i < CPUS_MAX; i++) {
		const struct cpu *cpu = &cpus[i];

		if (cpu->head > 0 && cpu->bytes == 0)
			t = UINT64_MAX;
		else if ((cpu->head > cpu->bytes || cpu->cut) && cpu->first > t)
			t = cpu->first;
	}
	return t;
}

static bool switches_are_complete(void)
{
	for (size_t i = 0; i < CPUS_MAX; i++)
		if (cpus[i].cut)
			return false;
	return !lossy;
}

/* Join what nothing may be missing between. Return: how many joints there are. */
static size_t join(struct thread *t, uint64_t from)
{
	const bool complete = switches_are_complete();
	size_t n = 0;

	for (size_t i = 1; i < t->pieces.list.n; i++) {
		struct piece *p = &t->pieces.list.items[i];

		if (p->t0 < p[-1].t0) {
			printf("%" PRIu32 ".%" PRIu32 ": a piece of %" PRIu64
			       " comes after one of %" PRIu64 ": WRONG\n",
			       t->pid, t->tid, p->t0, p[-1].t0);
			wrong = true;
		}
		p->follows = !p->torn && p->t0 <= complete_until &&
			     (p[-1].t0 > from || (complete && stays_begun(&stays, t->pid, t->tid,
									  p[-1].t0, p->t0) == 1));
		n += p->follows;
	}
	if (pieces_join(&t->pieces) < 0)
		error(1, ENOMEM, "pieces");
	return n;
}

static void search(struct pieces *pieces, const char *dir, const char *name)
{
	const uint8_t *ips;
	struct emulog log;
	uint64_t ip;
	size_t n;
	int r;

	r = emulog_init(&log, dir, name);
	while (r == 0 && !pieces_found(pieces)) {
		if (pieces_seek(pieces, &ip))
			r = emulog_seek(&log, ip);
		if (r == 0)
			r = emulog_next_run(&log, &ips, &n);
		if (r == 0)
			r = pieces_show(pieces, ips, n);
	}
	if (r < 0)
		error(1, -r, "%s/%s.log", dir, name);
	emulog_deinit(&log);
}

static void find(struct thread *t, const char *dir, uint64_t from)
{
	const size_t n = t->pieces.list.n, n_joined = join(t, from);
	char name[64];

	/* Of whom there was but a gap there need not be a log. */
	if (n == 0)
		return;
	n_pieces += n;
	n_joints += n_joined;
	(void)snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu32, t->pid, t->tid);
	search(&t->pieces, dir, name);
	printf("%s: %" PRIu64 " instructions in %zu pieces, %zu of them joined to the one before, "
	       "%" PRIu64 " jumps",
	       name, t->n, n, n_joined, t->pieces.n_jumps);
	if (!pieces_found(&t->pieces)) {
		printf(", piece %zu (%zu instructions, at %" PRIu64 ") is not in the log: WRONG",
		       t->pieces.at, t->pieces.list.items[t->pieces.at].ips.n,
		       t->pieces.list.items[t->pieces.at].t0);
		wrong = true;
	}
	putchar('\n');
	if (!pieces_found(&t->pieces))
		pieces_print_nearest(&t->pieces, stdout);
	pieces_deinit(&t->pieces);
}

int main(int argc, char **argv)
{
	uint64_t n = 0, requested = 0, from;
	const char *engine = NULL;
	int option;

	while ((option = getopt(argc, argv, "e:lr:")) != -1) {
		if (option == 'e')
			engine = optarg;
		else if (option == 'l')
			lossy = true;
		else if (option == 'r')
			requested = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	if (argc - optind != 2)
		error(2, 0, "usage: pieces [-e ENGINE] [-l] [-r NS] SNAPSHOT LOGDIR");

	read_manifest(argv[optind]);
	decode(argv[optind], engine, requested);
	from = horizon();
	if (lossy && last_gap > from)
		from = last_gap;
	wrong |= lossy && n_gaps == 0;
	if (stays_init(&stays, argv[optind], false) < 0)
		return 1;
	for (size_t i = 0; i < threads.n; i++) {
		n += threads.items[i].n;
		find(&threads.items[i], argv[optind + 1], from);
	}
	stays_deinit(&stays);
	printf("%zu threads, %" PRIu64 " instructions in %zu pieces, %zu of them joined to the one "
	       "before, %" PRIu64 " gaps, %" PRIu64 " of them for want of a CPU%s\n",
	       threads.n, n, n_pieces, n_joints, n_gaps, n_overflows, wrong ? ": WRONG" : "");
	vec_deinit(&threads);
	return wrong || n == 0;
}
