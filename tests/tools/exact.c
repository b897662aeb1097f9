/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * exact [-f] [-e ENGINE] [-m | -b] [-p PID]... SNAPSHOT LOGDIR: decodes the snapshot and compares
 * each thread's instructions, one by one, with the ground truth that the plugin logged. An int3 or
 * int n that the log marks as unreported may be missing, nothing else. Of a process that was killed
 * the log's last part is missing, or the packets'; then one is the beginning of the other.
 *
 * Times must not go back within a slice, and lie within the stay on the CPU that the snapshot's
 * switch records tell of.
 *
 * -f decodes a snapshot that something was added to. -m takes the instructions from a directory of
 * drmemtrace files instead of a snapshot, by a reader of its own; -b does so by the library.
 *
 * -p compares only the instructions of these processes.
 *
 * It prints a line for each thread, then the totals: also how many CPUs had more than one thread,
 * and how many threads more than one CPU.
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
#include "tests/judge/memtrace.h"
#include "tests/lib/decoding.h"
#include "tests/lib/emulog.h"
#include "tests/lib/stays.h"
#include "tests/lib/steady.h"
#include "util/vec.h"

#define CPUS_MAX 256

struct thread {
	uint32_t pid, tid;
	struct emulog log;
	uint64_t n; /* instructions that were equal */
	uint64_t n_unreported;
	uint64_t n_beyond; /* decoded behind the end of a log that was cut off */
	bool cpus[CPUS_MAX];
	bool wrong;
};

static VEC(struct thread) threads;
static VEC(uint32_t) only; /* these processes; none: all */

static bool is_wanted(uint32_t pid)
{
	for (size_t i = 0; i < only.n; i++)
		if (only.items[i] == pid)
			return true;
	return only.n == 0;
}

static void open_logs(const char *dir)
{
	struct emulog_names names;
	int r;

	r = emulog_list(dir, &names);
	if (r < 0 || names.list.n == 0)
		error(1, r < 0 ? -r : 0, "%s: holds no log", dir);
	for (size_t i = 0; i < names.list.n; i++) {
		struct thread t = {};

		r = emulog_init(&t.log, dir, names.list.items[i]);
		if (r < 0)
			error(1, -r, "%s/%s", dir, names.list.items[i]);
		t.pid = t.log.pid;
		t.tid = t.log.tid;
		if (!is_wanted(t.pid)) {
			emulog_deinit(&t.log);
			continue;
		}
		if (vec_push(&threads, t) < 0)
			error(1, ENOMEM, "threads");
	}
	emulog_names_deinit(&names);
}

static struct thread *thread_of(uint32_t pid, uint32_t tid)
{
	for (size_t i = 0; i < threads.n; i++)
		if (threads.items[i].pid == pid && threads.items[i].tid == tid)
			return &threads.items[i];
	error(1, 0, "thread %" PRIu32 "/%" PRIu32 " was decoded, but there is no log of it", pid,
	      tid);
	return NULL;
}

/* Kernel code, in the upper half of all addresses, is logged per CPU, as threads of process 0. */
static struct thread *whose(const struct ptd_slice *slice, const struct ptd_run *run)
{
	static struct thread *last;
	const bool kernel = run->base >> 63;
	const uint32_t pid = kernel ? 0 : slice->pid, tid = kernel ? slice->cpu + 1 : slice->tid;

	if (!is_wanted(pid))
		return NULL;
	if (!last || last->pid != pid || last->tid != tid)
		last = thread_of(pid, tid);
	return last;
}

/* The next instruction of the log must be @ip. */
static void expect(struct thread *t, uint64_t ip)
{
	struct emulog_insn logged;

	if (t->wrong)
		return;
	for (;;) {
		const int r = emulog_next(&t->log, &logged);

		if (r == EMULOG_END && t->log.cut) {
			t->n_beyond++;
			return;
		}
		if (r == EMULOG_END) {
			printf("%" PRIu32 ".%" PRIu32 ": after %" PRIu64
			       " equal instructions decoded %#" PRIx64 ", but the log ends\n",
			       t->pid, t->tid, t->n, ip);
			break;
		}
		if (r < 0)
			error(1, -r, "log of %" PRIu32 ".%" PRIu32, t->pid, t->tid);
		if (logged.ip == ip) {
			t->n++;
			return;
		}
		if (logged.unreported) {
			t->n_unreported++;
			continue;
		}
		printf("%" PRIu32 ".%" PRIu32 ": after %" PRIu64
		       " equal instructions decoded %#" PRIx64 ", logged %#" PRIx64 "\n",
		       t->pid, t->tid, t->n, ip, logged.ip);
		break;
	}
	t->wrong = true;
}

/* What is known of the times of the slice that is being read. */
struct span {
	uint64_t slice;
	uint64_t last;
	uint64_t end;
};

static uint64_t n_times; /* that differ from the one before */
static bool times_wrong;

static void check_time(struct span *span, const struct stays *stays, const struct ptd_slice *slice,
		       uint64_t t)
{
	const char *what = NULL;

	if (slice->id != span->slice) {
		*span = (struct span){ .slice = slice->id, .last = slice->t0 };
		span->end = stays_end(stays, slice->cpu, slice->pid, slice->tid, t);
		if (span->end == 0)
			what = "is in another thread's stay";
	}
	if (t < span->last)
		what = "goes back";
	else if (t > span->end && span->end > 0)
		what = "is behind the end of the stay";
	if (what && !times_wrong)
		printf("time %" PRIu64 " on cpu %" PRIu32 " in a slice of %" PRIu32 ".%" PRIu32
		       " from %" PRIu64 " on %s: last %" PRIu64 ", end %" PRIu64 "\n",
		       t, slice->cpu, slice->pid, slice->tid, slice->t0, what, span->last,
		       span->end);
	times_wrong |= what != NULL;
	n_times += t != span->last;
	span->last = t;
}

static void decode_snapshot(const char *path, const char *engine, bool force)
{
	/* CPUID 0x15 is that of the emulated CPUs' PT, which perf cannot know. */
	const struct ptd_options options = {
		.size = sizeof(options),
		.input = path,
		.engine = engine,
		.force = force,
		.cpuid_15_eax = 1,
		.cpuid_15_ebx = 40,
	};
	_cleanup_(steady_deinit) struct steady steady = {};
	struct span span = { .slice = UINT64_MAX };
	const struct ptd_batch *batch;
	struct ptd_decoder *d;
	struct stays stays;
	int r;

	r = stays_init(&stays, path, force);
	if (r < 0)
		error(1, -r, "%s", path);
	d = decoding_new(&options);
	while ((batch = decoding_next(d, path))) {
		r = steady_batch(&steady, batch);
		if (r < 0)
			error(1, -r, "%s: what a batch gave out has another place", path);
		for (size_t i = 0; i < batch->n_marks; i++) {
			const struct ptd_mark *m = &batch->marks[i];

			if (m->kind == PTD_MARK_GAP)
				printf("gap: %s, cpu %" PRIu32 " offset %" PRIu64 " ip %#" PRIx64
				       ", %" PRIu64 " bytes\n",
				       ptd_gap_reason_name(m->reason), batch->slice->cpu, m->offset,
				       m->ip, m->n_bytes);
		}
		for (size_t i = 0; i < batch->n_runs; i++) {
			struct thread *t = whose(batch->slice, &batch->runs[i]);

			if (!t)
				continue;
			if (batch->slice->cpu < CPUS_MAX)
				t->cpus[batch->slice->cpu] = true;
			/* The kernel makes the records: it runs on both sides of each. */
			if (t->pid != 0)
				check_time(&span, &stays, batch->slice, batch->runs[i].t);
			for (size_t k = 0; k < batch->runs[i].n; k++)
				expect(t, ptd_run_ip(&batch->runs[i], k));
		}
	}
	if (steady_n_changed(&steady) > 0)
		error(1, 0, "%s: %zu symbols and blocks did not stay as they were", path,
		      steady_n_changed(&steady));
	ptd_decoder_free(d);
	stays_deinit(&stays);
}

/* Decode a directory of drmemtrace files. */
static void read_back(const char *path)
{
	const struct ptd_options options = { .size = sizeof(options), .input = path };
	_cleanup_(steady_deinit) struct steady steady = {};
	struct ptd_decoder *d = decoding_new(&options);
	const struct ptd_batch *batch;
	uint64_t t0 = 0;
	int r;

	while ((batch = decoding_next(d, path))) {
		r = steady_batch(&steady, batch);
		if (r < 0)
			error(1, -r, "%s: what a batch gave out has another place", path);
		if (batch->slice->t0 < t0)
			error(1, 0, "%s: slices are not in the order of time", path);
		t0 = batch->slice->t0;
		for (size_t i = 0; i < batch->n_marks; i++)
			if (batch->marks[i].kind == PTD_MARK_GAP)
				printf("gap: %s, thread %" PRIu32 "\n",
				       ptd_gap_reason_name(batch->marks[i].reason),
				       batch->slice->tid);
		for (size_t i = 0; i < batch->n_runs; i++) {
			struct thread *t = whose(batch->slice, &batch->runs[i]);

			for (size_t k = 0; t && k < batch->runs[i].n; k++)
				expect(t, ptd_run_ip(&batch->runs[i], k));
		}
	}
	if (steady_n_changed(&steady) > 0)
		error(1, 0, "%s: %zu symbols and blocks did not stay as they were", path,
		      steady_n_changed(&steady));
	ptd_decoder_free(d);
}

static void read_memtrace(const char *path)
{
	for (size_t i = 0; i < threads.n; i++) {
		struct thread *t = &threads.items[i];
		char command[8192];
		uint64_t ip;
		FILE *f;

		snprintf(command, sizeof(command),
			 "\"$O/tools/memtrace-check\" --addresses %" PRIu32 ".%" PRIu32 " '%s'",
			 t->pid, t->tid, path);
		f = popen(command, "re");
		if (!f)
			error(1, errno, "%s", command);
		while (fread(&ip, sizeof(ip), 1, f) == 1)
			expect(t, ip);
		if (pclose(f) != 0)
			error(1, 0, "%s: failed", command);
	}
}

/* What the log has beyond the decoded ones. */
static uint64_t rest(struct thread *t)
{
	struct emulog_insn logged;
	uint64_t n = 0, first = 0;

	while (emulog_next(&t->log, &logged) == 0) {
		if (logged.unreported)
			t->n_unreported++;
		else
			n++;
		if (n == 1 && first == 0)
			first = logged.ip;
	}
	if (n > 0 && !t->log.cut)
		printf("%" PRIu32 ".%" PRIu32 ": decoded %" PRIu64
		       ", but the log goes on at %#" PRIx64 "\n",
		       t->pid, t->tid, t->n, first);
	return t->log.cut ? 0 : n;
}

int main(int argc, char **argv)
{
	uint64_t n = 0, n_unreported = 0;
	size_t n_migrated = 0, n_shared = 0, n_cut = 0;
	const char *engine = NULL;
	bool memtrace = false, back = false, force = false, wrong = false;
	int option;

	while ((option = getopt(argc, argv, "be:fmp:")) != -1) {
		if (option == 'e')
			engine = optarg;
		else if (option == 'f')
			force = true;
		else if (option == 'm')
			memtrace = true;
		else if (option == 'b')
			back = true;
		else if (option == 'p' && vec_push(&only, (uint32_t)strtoul(optarg, NULL, 10)) < 0)
			error(1, ENOMEM, "processes");
		else if (option == 'p')
			continue;
		else
			return 2;
	}
	if (argc - optind != 2)
		error(2, 0, "usage: exact [-f] [-e ENGINE] [-m | -b] [-p PID]... SNAPSHOT LOGDIR");

	open_logs(argv[optind + 1]);
	if (memtrace)
		read_memtrace(argv[optind]);
	else if (back)
		read_back(argv[optind]);
	else
		decode_snapshot(argv[optind], engine, force);

	for (size_t i = 0; i < threads.n; i++) {
		struct thread *t = &threads.items[i];
		size_t n_cpus = 0;

		if (!t->wrong && rest(t) > 0)
			t->wrong = true;
		n_cut += t->log.cut;
		for (size_t k = 0; k < CPUS_MAX; k++)
			n_cpus += t->cpus[k];
		printf("%" PRIu32 ".%" PRIu32 ": %" PRIu64 " instructions, %" PRIu64
		       " unreported, %zu cpus%s%s\n",
		       t->pid, t->tid, t->n, t->n_unreported, n_cpus, t->log.cut ? ", killed" : "",
		       t->wrong ? ": WRONG" : "");
		n += t->n;
		n_unreported += t->n_unreported;
		n_migrated += n_cpus > 1;
		wrong |= t->wrong;
	}
	for (size_t k = 0; k < CPUS_MAX; k++) {
		size_t n_threads = 0;

		for (size_t i = 0; i < threads.n; i++)
			n_threads += threads.items[i].cpus[k];
		n_shared += n_threads > 1;
	}
	wrong |= times_wrong;
	printf("%zu threads, %" PRIu64 " times, %" PRIu64 " instructions equal, %" PRIu64
	       " unreported, %zu threads on several cpus, %zu cpus with several threads, %zu "
	       "killed%s\n",
	       threads.n, n_times, n, n_unreported, n_migrated, n_shared, n_cut,
	       wrong ? ": WRONG" : "");
	return wrong || n == 0;
}
