/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/kernel.h"

#include <errno.h>
#include <stdlib.h>

void memtrace_kernel_deinit(struct memtrace_kernel *kernel)
{
	vec_deinit_each(&kernel->threads, thread, {
		vec_deinit(&(*thread)->syscalls.items);
		vec_deinit(&(*thread)->signals.items);
		free(*thread);
	});
	map_deinit(&kernel->by_thread);
}

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

struct memtrace_kernel_thread *memtrace_kernel_thread(const struct memtrace_kernel *kernel,
						      uint32_t pid, uint32_t tid)
{
	const uint64_t *index = map_get(&kernel->by_thread, key_of(pid, tid));

	return index ? kernel->threads.items[*index] : NULL;
}

static int add_thread(struct memtrace_kernel *kernel, uint32_t pid, uint32_t tid,
		      struct memtrace_kernel_thread **ret_thread)
{
	_cleanup_(freep) struct memtrace_kernel_thread *thread = calloc(1, sizeof(*thread));

	if (!thread || vec_push(&kernel->threads, thread) < 0)
		return -ENOMEM;
	*ret_thread = TAKE(thread);
	return map_put(&kernel->by_thread, key_of(pid, tid), kernel->threads.n - 1);
}

int memtrace_kernel_take(struct memtrace_kernel *kernel, const struct ptd_sideband *record)
{
	const bool is_call = record->kind == PTD_SIDEBAND_SYSCALL;
	struct memtrace_kernel_thread *thread;
	struct memtrace_samples *samples;
	int r;

	/* A signal without a handler leads nowhere. */
	if (!is_call && (record->kind != PTD_SIDEBAND_SIGNAL || record->address <= 1))
		return 0;
	if (kernel->n_samples == MEMTRACE_SAMPLES_MAX) {
		kernel->n_left_out++;
		return 0;
	}
	thread = memtrace_kernel_thread(kernel, record->pid, record->tid);
	if (!thread) {
		r = add_thread(kernel, record->pid, record->tid, &thread);
		if (r < 0)
			return r;
	}
	samples = is_call ? &thread->syscalls : &thread->signals;
	r = vec_push(&samples->items, { .t = record->t,
					.number = is_call ? record->number : record->signal,
					.handler = is_call ? 0 : record->address });
	if (r < 0)
		return r;
	kernel->n_samples++;
	kernel->has_syscalls |= is_call;
	return 0;
}

/* Forget the samples before @since. Return: the next one; NULL if it is later than @until. */
static const struct memtrace_sample *next_sample(struct memtrace_samples *samples, uint64_t since,
						 uint64_t until)
{
	const struct memtrace_sample *sample;

	while (samples->n_past < samples->items.n &&
	       samples->items.items[samples->n_past].t < since)
		samples->n_past++;
	if (samples->n_past == samples->items.n)
		return NULL;
	sample = &samples->items.items[samples->n_past];
	return sample->t <= until ? sample : NULL;
}

uint64_t memtrace_kernel_syscall(struct memtrace_kernel_thread *thread, uint64_t since,
				 uint64_t until, uint64_t *ret_t)
{
	const struct memtrace_sample *sample =
	    thread ? next_sample(&thread->syscalls, since, until) : NULL;

	*ret_t = sample ? sample->t : since;
	if (!sample)
		return MEMTRACE_NO_NUMBER;
	thread->syscalls.n_past++;
	return sample->number;
}

uint64_t memtrace_kernel_signal(struct memtrace_kernel_thread *thread, uint64_t since,
				uint64_t until, uint64_t handler)
{
	const struct memtrace_sample *sample;

	while (thread && (sample = next_sample(&thread->signals, since, until))) {
		thread->signals.n_past++;
		if (sample->handler == handler)
			return sample->number;
	}
	return 0;
}

uint64_t memtrace_kernel_next_signal(struct memtrace_kernel_thread *thread, uint64_t since,
				     uint64_t until, uint64_t handler)
{
	const size_t n_past = thread ? thread->signals.n_past : 0;
	const uint64_t number = memtrace_kernel_signal(thread, since, until, handler);

	if (thread)
		thread->signals.n_past = n_past;
	return number;
}
