/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memtrace kernel: samples of system calls and signals are given to what they belong to, by thread
 * and time; where some are missing, none is taken for another.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decoder/drmemtrace/kernel.h"

static int teardown(void **state)
{
	memtrace_kernel_deinit(*state);
	return 0;
}

static void take(struct memtrace_kernel *kernel, enum ptd_sideband_kind kind, uint32_t tid,
		 uint64_t t, uint64_t number, uint64_t handler)
{
	const struct ptd_sideband record = {
		.kind = kind,
		.pid = 7,
		.tid = tid,
		.t = t,
		.signal = (uint32_t)number,
		.number = number,
		.address = handler,
	};

	assert_int_equal(memtrace_kernel_take(kernel, &record), 0);
}

static void assert_syscall(struct memtrace_kernel_thread *thread, uint64_t since, uint64_t until,
			   uint64_t number, uint64_t t)
{
	uint64_t ret_t = 0;

	assert_int_equal(memtrace_kernel_syscall(thread, since, until, &ret_t), number);
	assert_int_equal(ret_t, t);
}

static void syscalls(void **state)
{
	struct memtrace_kernel *kernel = *state;
	struct memtrace_kernel_thread *thread;

	assert_false(kernel->has_syscalls);
	for (uint64_t t = 100; t <= 900; t += 100)
		take(kernel, PTD_SIDEBAND_SYSCALL, 8, t, t / 100, 0);
	take(kernel, PTD_SIDEBAND_SYSCALL, 9, 150, 77, 0);
	take(kernel, PTD_SIDEBAND_COMM, 10, 150, 77, 0);
	assert_true(kernel->has_syscalls);
	assert_int_equal(kernel->n_samples, 10);
	assert_null(memtrace_kernel_thread(kernel, 7, 10));
	assert_null(memtrace_kernel_thread(kernel, 8, 8));
	assert_syscall(NULL, 5, UINT64_MAX, MEMTRACE_NO_NUMBER, 5);

	thread = memtrace_kernel_thread(kernel, 7, 8);
	assert_syscall(thread, 50, 120, 1, 100);
	/* The sample of this one is missing: the next is of another call. */
	assert_syscall(thread, 120, 190, MEMTRACE_NO_NUMBER, 120);
	assert_syscall(thread, 190, 220, 2, 200);
	/* Nothing tells when the thread went on: the next sample it is. */
	assert_syscall(thread, 200, UINT64_MAX, 3, 300);
	/* A part of the trace is lost, and with it calls that have samples. */
	assert_syscall(thread, 650, 750, 7, 700);
	assert_syscall(thread, 900, 900, 9, 900);
	assert_syscall(thread, 900, UINT64_MAX, MEMTRACE_NO_NUMBER, 900);
	assert_syscall(memtrace_kernel_thread(kernel, 7, 9), 0, 150, 77, 150);
}

static void signals(void **state)
{
	struct memtrace_kernel *kernel = *state;
	struct memtrace_kernel_thread *thread;

	take(kernel, PTD_SIDEBAND_SIGNAL, 8, 100, 10, 0x401000);
	take(kernel, PTD_SIDEBAND_SIGNAL, 8, 150, 15, 0); /* no handler */
	take(kernel, PTD_SIDEBAND_SIGNAL, 8, 160, 17, 1); /* it is ignored */
	take(kernel, PTD_SIDEBAND_SIGNAL, 8, 200, 11, 0x402000);
	take(kernel, PTD_SIDEBAND_SIGNAL, 8, 300, 12, 0x401000);
	assert_false(kernel->has_syscalls);
	thread = memtrace_kernel_thread(kernel, 7, 8);
	assert_int_equal(memtrace_kernel_signal(NULL, 0, UINT64_MAX, 0x401000), 0);
	assert_int_equal(memtrace_kernel_signal(thread, 50, 90, 0x401000), 0);
	assert_int_equal(memtrace_kernel_signal(thread, 90, 110, 0x401000), 10);
	assert_int_equal(memtrace_kernel_signal(thread, 110, 310, 0x401000), 12);
	assert_int_equal(memtrace_kernel_signal(thread, 110, UINT64_MAX, 0x402000), 0);
}

/* Memory stays bounded, and what is not kept is counted. */
static void too_many(void **state)
{
	struct memtrace_kernel *kernel = *state;

	kernel->n_samples = MEMTRACE_SAMPLES_MAX - 1;
	for (uint64_t t = 1; t <= 3; t++)
		take(kernel, PTD_SIDEBAND_SYSCALL, 8, t, t, 0);
	assert_int_equal(kernel->n_left_out, 2);
	assert_syscall(memtrace_kernel_thread(kernel, 7, 8), 0, UINT64_MAX, 1, 1);
	assert_syscall(memtrace_kernel_thread(kernel, 7, 8), 1, UINT64_MAX, MEMTRACE_NO_NUMBER, 1);
}

int main(void)
{
	static struct memtrace_kernel kernels[3];
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate_setup_teardown(syscalls, NULL, teardown, &kernels[0]),
		cmocka_unit_test_prestate_setup_teardown(signals, NULL, teardown, &kernels[1]),
		cmocka_unit_test_prestate_setup_teardown(too_many, NULL, teardown, &kernels[2]),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
