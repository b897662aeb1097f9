/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/prove/subject.h"

#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "ctl/prove/jitted.h"

#define NOINLINE __attribute__((__noinline__))

static volatile uint64_t sum;

NOINLINE void subject_begin(void)
{
	__asm__ volatile("nop");
}

NOINLINE void subject_end(void)
{
	__asm__ volatile("nop");
}

/* Print the thread, whose part this is. */
static void finish(void)
{
	subject_end();
	printf("%d\n", (int)gettid());
}

/* --- branches --------------------------------------------------------------------------------- */

static NOINLINE uint64_t step_number(uint64_t x, unsigned kind)
{
	switch (kind) {
	case 0:
		return x + 7;
	case 1:
		return x * 5;
	case 2:
		return x ^ x >> 9;
	case 3:
		return x << 3 | x >> 61;
	case 4:
		return x - (x >> 5);
	case 5:
		return ~x;
	default:
		return x | 1;
	}
}

/* Sort by a pointer to what compares. */
static NOINLINE bool is_less(uint32_t a, uint32_t b)
{
	return a < b;
}

static NOINLINE void sort(uint32_t *numbers, size_t n, bool (*volatile less)(uint32_t, uint32_t))
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && less(numbers[k], numbers[k - 1]); k--) {
			const uint32_t swapped = numbers[k];

			numbers[k] = numbers[k - 1];
			numbers[k - 1] = swapped;
		}
}

/* Conditional branches, a table of jumps, calls by pointer, repeated string instructions. */
static void run_branches(void)
{
	static uint32_t numbers[100];
	const void *from = numbers;
	void *to = numbers + 50;
	size_t size = 200;
	uint64_t x = 88172645463325252;

	subject_begin();
	for (size_t i = 0; i < 100; i++) {
		x = step_number(x ^ x << 7 ^ x >> 9, (unsigned)(x % 7));
		numbers[i] = (uint32_t)x;
	}
	sort(numbers, 100, is_less);
	__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(size) : : "memory");
	sum += numbers[7];
	finish();
}

/* --- returns ---------------------------------------------------------------------------------- */

/* A call whose return address is replaced, as kernels with retpolines do for indirect calls. */
static NOINLINE uint64_t call_by_retpoline(uint64_t (*function)(uint64_t, unsigned), uint64_t x)
{
	uint64_t y;

	__asm__ volatile("mov %[x], %%rdi\n"
			 "	mov $1, %%esi\n"
			 "	sub $128, %%rsp\n"
			 "	call 3f\n"
			 "	jmp 4f\n"
			 "3:	call 2f\n"
			 "1:	pause\n"
			 "	lfence\n"
			 "	jmp 1b\n"
			 "2:	mov %[function], (%%rsp)\n"
			 "	ret\n"
			 "4:	add $128, %%rsp\n"
			 : "=a"(y)
			 : [x] "r"(x), [function] "r"(function)
			 : "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "cc", "memory");
	return y;
}

static void run_retpolines(void)
{
	uint64_t x = 3;

	subject_begin();
	for (unsigned i = 0; i < 200; i++)
		x = call_by_retpoline(step_number, x);
	sum += x;
	finish();
}

static NOINLINE uint64_t descend(unsigned depth)
{
	return depth == 0 ? sum : descend(depth - 1) * 3 + depth;
}

/* Deeper than the 64 calls that compressed returns reach. */
static void run_recursion(void)
{
	subject_begin();
	for (unsigned depth = 60; depth < 300; depth += 60)
		sum += descend(depth);
	finish();
}

static jmp_buf escape;
static void (*volatile escape_deeper)(unsigned depth);

static NOINLINE void escape_from(unsigned depth)
{
	if (depth == 0)
		longjmp(escape, 1);
	escape_deeper(depth - 1);
	sum++;
}

static void run_longjmp(void)
{
	volatile unsigned i = 0;

	escape_deeper = escape_from;
	subject_begin();
	for (i = 0; i < 40; i++)
		if (setjmp(escape) == 0)
			escape_from(i);
	finish();
}

static ucontext_t here, there;

static void be_there(void)
{
	for (;;) {
		sum += descend(3);
		(void)swapcontext(&there, &here);
	}
}

static void run_stacks(void)
{
	static char stack[64 << 10];

	(void)getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, be_there, 0);
	subject_begin();
	for (unsigned i = 0; i < 30; i++)
		(void)swapcontext(&here, &there);
	finish();
}

/* --- signals ---------------------------------------------------------------------------------- */

static sigjmp_buf from_handler;

static void on_signal(int signal)
{
	sum += (uint64_t)signal;
	if (signal == SIGUSR1)
		(void)raise(SIGUSR2);
	if (signal == SIGWINCH)
		siglongjmp(from_handler, 1);
}

/* One handler in another, and one that is left by siglongjmp(). */
static void run_signals(void)
{
	(void)signal(SIGUSR1, on_signal);
	(void)signal(SIGUSR2, on_signal);
	(void)signal(SIGWINCH, on_signal);
	subject_begin();
	for (unsigned i = 0; i < 30; i++) {
		(void)raise(SIGUSR1);
		if (sigsetjmp(from_handler, 1) == 0)
			(void)raise(SIGWINCH);
	}
	finish();
}

/* --- a JIT compiler --------------------------------------------------------------------------- */

static void run_jit(void)
{
	struct jitted jitted;

	jitted_init(&jitted);
	subject_begin();
	for (uint32_t i = 1; i <= 20; i++)
		sum += jitted_make(&jitted, i)(5);
	finish();
}

/* --- CPUs ------------------------------------------------------------------------------------- */

static cpu_set_t allowed;

/* Go round the CPUs, on each of which the next stay begins. */
static void migrate(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned cpu = 0; cpu < 64; cpu++) {
			cpu_set_t one;

			if (!CPU_ISSET(cpu, &allowed))
				continue;
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			(void)sched_setaffinity(0, sizeof(one), &one);
			sum += descend(5);
		}
	}
}

static void run_migration(void)
{
	(void)sched_getaffinity(0, sizeof(allowed), &allowed);
	subject_begin();
	migrate(10);
	finish();
}

static void *run_thread(void *userdata)
{
	volatile uint64_t own = 0;
	pid_t *tid = userdata;

	*tid = gettid();
	subject_begin();
	for (unsigned i = 0; i < 30; i++) {
		own += step_number(own, i % 7);
		(void)sched_yield();
	}
	subject_end();
	return NULL;
}

/* Their switches are as they come; what each executes is not. */
static void run_threads(void)
{
	pthread_t threads[3];
	pid_t tids[3];

	for (size_t i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, run_thread, &tids[i]) != 0)
			errx(1, "cannot make a thread");
	for (size_t i = 0; i < 3; i++) {
		(void)pthread_join(threads[i], NULL);
		printf("%d\n", (int)tids[i]);
	}
}

const struct subject subjects[] = {
	{ "branches", run_branches },
	{ "retpolines", run_retpolines },
	{ "recursion", run_recursion },
	{ "longjmp", run_longjmp },
	{ "stacks", run_stacks },
	{ "signals", run_signals },
	{ "jit", run_jit },
	{ "migration", run_migration },
	{ "threads", run_threads },
};
const size_t n_subjects = sizeof(subjects) / sizeof(subjects[0]);
