/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/trial.h"

#include <errno.h>
#include <inttypes.h>

#include "ptd/calls.h"
#include "tests/lib/callcheck.h"
#include "tests/lib/follow.h"
#include "tests/lib/steady.h"

DEFINE_CLEANUP(struct ptd_decoder *, ptd_decoder_free);
DEFINE_CLEANUP(struct ptd_calls *, ptd_calls_free);

const struct trial_thread *trial_find(const struct trial *trial, uint32_t pid, uint32_t tid)
{
	for (size_t i = 0; i < trial->threads.n; i++)
		if (trial->threads.items[i].pid == pid && trial->threads.items[i].tid == tid)
			return &trial->threads.items[i];
	return NULL;
}

void trial_deinit(struct trial *trial)
{
	for (size_t i = 0; i < trial->threads.n; i++) {
		vec_deinit(&trial->threads.items[i].ips);
		vec_deinit(&trial->threads.items[i].times);
	}
	vec_deinit(&trial->threads);
	free(trial->refusal);
	trial->refusal = NULL;
}

/* Return: the list that @ip of @slice belongs to; NULL if there is no memory. */
static struct trial_thread *list_of(struct trial *trial, enum trial_lists lists,
				    const struct ptd_slice *slice, uint64_t ip)
{
	const bool of_cpu = lists == TRIAL_KERNEL_OF_CPUS && ip >> 63;
	const uint32_t pid = of_cpu ? 0 : slice->pid, tid = of_cpu ? slice->cpu + 1 : slice->tid;

	if (!trial_find(trial, pid, tid) &&
	    vec_push(&trial->threads, { .pid = pid, .tid = tid }) < 0)
		return NULL;
	return (struct trial_thread *)(uintptr_t)trial_find(trial, pid, tid);
}

static int keep_run(struct trial_thread *thread, const struct ptd_run *run)
{
	for (size_t k = 0; k < run->n; k++) {
		const struct trial_time time = { run->t, k + 1 < run->n ? run->t : UINT64_MAX };

		if (vec_push(&thread->ips, ptd_run_ip(run, k)) < 0 ||
		    vec_push(&thread->times, time) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Keeps the lists while the stream goes by. */
struct keeper {
	struct trial *trial;
	enum trial_lists lists;
	uint64_t slice;
	size_t thread; /* of the slice's last instruction */
	size_t last;   /* its number in the thread, from 1; 0: there is none yet */
};

/* @t is the time of a mark or instruction behind the slice's last instruction. */
static void pass_time(struct keeper *k, uint64_t t)
{
	if (k->last)
		k->trial->threads.items[k->thread].times.items[k->last - 1].next = t;
}

static int keep_batch(struct keeper *k, const struct ptd_batch *batch)
{
	size_t m = 0;

	if (k->slice != batch->slice->id)
		k->last = 0;
	k->slice = batch->slice->id;
	for (size_t i = 0; i <= batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];
		struct trial_thread *thread;

		for (; m < batch->n_marks && batch->marks[m].run == i; m++)
			pass_time(k, batch->marks[m].t);
		if (i == batch->n_runs)
			break;
		pass_time(k, run->t);
		thread = list_of(k->trial, k->lists, batch->slice, run->base);
		if (!thread || keep_run(thread, run) < 0)
			return -ENOMEM;
		k->thread = (size_t)(thread - k->trial->threads.items);
		k->last = thread->ips.n;
	}
	return 0;
}

static void check_account(struct trial *trial, const struct ptd_stats *stats, FILE *faults)
{
	uint64_t n_insns = 0, n_gaps = 0, lost = 0;

	for (size_t i = 0; i < stats->n_cpus; i++) {
		const struct ptd_cpu_stats *c = &stats->cpus[i];

		n_insns += c->n_insns;
		n_gaps += c->n_gaps;
		lost += c->bytes_lost;
		if (c->bytes_in == c->bytes_decoded + c->bytes_lost + c->bytes_out_of_scope)
			continue;
		trial->n_faults++;
		fprintf(faults,
			"cpu %" PRIu32 ": of %" PRIu64 " bytes %" PRIu64 " were decoded, %" PRIu64
			" lost and %" PRIu64 " out of scope\n",
			c->cpu, c->bytes_in, c->bytes_decoded, c->bytes_lost,
			c->bytes_out_of_scope);
	}
	for (size_t i = 0; i < stats->n_gap_reasons; i++) {
		n_gaps -= stats->n_gaps[i];
		lost -= stats->gap_bytes[i];
	}
	if (n_insns == trial->n_insns && n_gaps == 0 && lost == 0)
		return;
	trial->n_faults++;
	fprintf(faults,
		"the account says %" PRIu64 " instructions, the stream has %" PRIu64
		"; gaps %" PRId64 ", bytes %" PRId64 " too many\n",
		n_insns, trial->n_insns, (int64_t)n_gaps, (int64_t)lost);
}

static int check_calls(struct callcheck *check, struct ptd_calls *calls)
{
	const struct ptd_call_batch *batch;
	int r;

	while ((r = ptd_calls_next(calls, &batch)) == 0) {
		r = callcheck_calls(check, batch);
		if (r < 0)
			return r;
	}
	return r == PTD_END ? 0 : r;
}

int trial_run(const struct ptd_options *options, enum trial_lists lists, FILE *faults,
	      struct trial *ret_trial)
{
	_cleanup_(ptd_decoder_freep) struct ptd_decoder *d = NULL;
	_cleanup_(follow_freep) struct follow *follow = NULL;
	_cleanup_(ptd_calls_freep) struct ptd_calls *calls = NULL;
	_cleanup_(callcheck_deinit) struct callcheck check = { .faults = faults };
	const struct ptd_batch *batch;
	_cleanup_(steady_deinit) struct steady steady = {};
	struct trial trial = {};
	struct keeper keeper = { .trial = &trial, .lists = lists };
	size_t n_changed;
	int r;

	r = ptd_decoder_new(options, &d, &trial.refusal);
	if (r < 0) {
		*ret_trial = trial;
		return trial.refusal ? 0 : r;
	}
	r = follow_new(options, ptd_decoder_info(d), faults, &follow);
	if (r == 0)
		r = ptd_calls_new(ptd_decoder_info(d), &calls);
	while (r == 0 && (r = ptd_decoder_next(d, &batch)) == 0) {
		r = follow_batch(follow, batch);
		if (r == 0)
			r = steady_batch(&steady, batch);
		if (r == 0)
			r = ptd_calls_batch(calls, batch);
		if (r == 0)
			r = check_calls(&check, calls);
		if (r == 0 && lists != TRIAL_NONE)
			r = keep_batch(&keeper, batch);
		trial.n_gaps += batch->n_marks;
		for (size_t i = 0; i < batch->n_marks; i++)
			trial.n_gaps -= batch->marks[i].kind != PTD_MARK_GAP;
	}
	if (r >= 0)
		r = ptd_calls_finish(calls);
	if (r >= 0)
		r = check_calls(&check, calls);
	if (r < 0) {
		trial_deinit(&trial);
		return r;
	}
	callcheck_end(&check);
	trial.n_insns = follow_n_insns(follow);
	trial.n_faults = follow_n_faults(follow) + check.n_faults;
	check_account(&trial, ptd_decoder_stats(d), faults);
	n_changed = steady_n_changed(&steady);
	if (n_changed > 0) {
		trial.n_faults++;
		fprintf(faults, "%zu symbols and blocks did not stay as they were\n", n_changed);
	}
	*ret_trial = trial;
	return 0;
}
