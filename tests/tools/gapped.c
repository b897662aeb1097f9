/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gapped ENGINE SNAPSHOT LOGDIR: decodes a snapshot of a program that may have gone on, and
 * compares each thread's instructions with the ground truth that the plugin logged, from its
 * beginning. Unlike exact it allows gaps: what comes behind one must be found further on in the
 * log, and so on. Instructions that the log marks as unreported may be missing.
 *
 * It prints how many instructions were equal and how many the gaps left out; exit status 1 if
 * anything was decoded that was not logged there.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "tests/lib/decoding.h"
#include "tests/lib/emulog.h"
#include "util/vec.h"

/* Of what comes behind a gap, so much must be found as a whole: loops look alike. */
#define SOUGHT_MAX 4096

struct thread {
	uint32_t pid, tid;
	struct emulog log;
	bool seeks; /* a gap was before */
	bool wrong;
	uint64_t n;      /* equal instructions */
	uint64_t n_left; /* logged, but left out by gaps */
	size_t n_sought;
	uint64_t sought[SOUGHT_MAX];
};

static VEC(struct thread *) threads;
static uint64_t n_gaps;

static struct thread *thread_of(const struct ptd_slice *slice, const char *dir)
{
	struct thread *t;
	char name[32];
	int r;

	for (size_t i = 0; i < threads.n; i++)
		if (threads.items[i]->pid == slice->pid && threads.items[i]->tid == slice->tid)
			return threads.items[i];
	t = calloc(1, sizeof(*t));
	if (!t || vec_push(&threads, t) < 0)
		error(2, ENOMEM, "threads");
	t->pid = slice->pid;
	t->tid = slice->tid;
	(void)snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu32, t->pid, t->tid);
	r = emulog_init(&t->log, dir, name);
	if (r < 0)
		error(2, -r, "%s/%s", dir, name);
	return t;
}

/* Return: whether there is another instruction that must have been reported. */
static bool next(struct thread *t, uint64_t wanted, uint64_t *ret_ip)
{
	struct emulog_insn insn;
	int r;

	while ((r = emulog_next(&t->log, &insn)) == 0) {
		*ret_ip = insn.ip;
		if (!insn.unreported || insn.ip == wanted)
			return true;
	}
	if (r < 0)
		error(2, -r, "log of %" PRIu32 ".%" PRIu32, t->pid, t->tid);
	return false;
}

static void fail(struct thread *t, const char *what, uint64_t ip)
{
	printf("%" PRIu32 ".%" PRIu32 ": after %" PRIu64 " equal instructions, %#" PRIx64
	       " was decoded, %s\n",
	       t->pid, t->tid, t->n, ip, what);
	t->wrong = true;
}

/* Find what comes behind a gap, further on in the log. */
static void find(struct thread *t)
{
	uint64_t window[SOUGHT_MAX], ip;
	uint64_t n_read = 0;

	t->seeks = false;
	while (t->n_sought > 0 && next(t, t->sought[t->n_sought - 1], &ip)) {
		size_t i = 0;

		window[n_read++ % SOUGHT_MAX] = ip;
		while (i < t->n_sought && i < n_read &&
		       window[(n_read - 1 - i) % SOUGHT_MAX] == t->sought[t->n_sought - 1 - i])
			i++;
		if (i < t->n_sought)
			continue;
		t->n += t->n_sought;
		t->n_left += n_read - t->n_sought;
		t->n_sought = 0;
	}
	if (t->n_sought > 0)
		fail(t, "behind a gap, but not so logged any more", t->sought[0]);
}

static void take(struct thread *t, uint64_t decoded)
{
	uint64_t ip = 0;

	if (t->wrong)
		return;
	if (t->seeks) {
		t->sought[t->n_sought++] = decoded;
		if (t->n_sought == SOUGHT_MAX)
			find(t);
		return;
	}
	if (!next(t, decoded, &ip) || ip != decoded)
		fail(t, "but not logged", decoded);
	t->n++;
}

static void begin_gap(struct thread *t)
{
	if (t->seeks && !t->wrong)
		find(t);
	t->seeks = true;
}

static void take_batch(const struct ptd_batch *batch, const char *dir)
{
	size_t m = 0;

	for (size_t i = 0; i <= batch->n_runs; i++) {
		struct thread *t = NULL;

		for (; m < batch->n_marks && batch->marks[m].run <= i; m++) {
			if (batch->marks[m].kind != PTD_MARK_GAP)
				continue;
			n_gaps++;
			if (batch->slice->tid != PTD_ID_UNKNOWN && batch->slice->tid != 0)
				begin_gap(thread_of(batch->slice, dir));
		}
		if (i < batch->n_runs)
			t = thread_of(batch->slice, dir);
		for (size_t k = 0; t && k < batch->runs[i].n; k++)
			take(t, ptd_run_ip(&batch->runs[i], k));
	}
}

static bool report(void)
{
	uint64_t n = 0, n_left = 0;
	bool wrong = false;

	for (size_t i = 0; i < threads.n; i++) {
		struct thread *t = threads.items[i];

		if (t->seeks && !t->wrong)
			find(t);
		n += t->n;
		n_left += t->n_left;
		wrong = wrong || t->wrong;
		emulog_deinit(&t->log);
		free(t);
	}
	printf("%zu threads, %" PRIu64 " instructions, %" PRIu64 " gaps left out %" PRIu64 "\n",
	       threads.n, n, n_gaps, n_left);
	vec_deinit(&threads);
	return wrong || n == 0;
}

int main(int argc, char **argv)
{
	struct ptd_options options = { .size = sizeof(options), .force = true };
	const struct ptd_batch *batch;
	struct ptd_decoder *d;

	if (argc != 4)
		error(2, 0, "usage: gapped ENGINE SNAPSHOT LOGDIR");
	options.engine = argv[1];
	options.input = argv[2];

	d = decoding_new(&options);
	while ((batch = decoding_next(d, options.input)))
		take_batch(batch, argv[3]);
	ptd_decoder_free(d);
	return report();
}
