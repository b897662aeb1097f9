/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program with 8 threads that handle 1000 signals, each in its own way: interrupted while
 * computing, in system calls that are restarted and that are not, by timers, on faults of their
 * own, nested, on another stack, and leaving the handler by siglongjmp.
 *
 * The main thread sends a signal only when the one before it was handled, so that none is merged.
 *
 *	signals [WORKER]...	all threads, or only these
 */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 8
#define N_EACH    125

struct worker {
	const char *name;
	void (*run)(struct worker *worker);
	int signal; /* that main sends; 0: it makes its own */
	bool whole_process;
	pthread_t thread;
	int pipe[2];
	_Atomic bool ready;
	_Atomic unsigned n_handled;
	volatile uint64_t work;
};

static __thread struct worker *self;
static __thread sigjmp_buf escape;
static __thread volatile sig_atomic_t nested;

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

static bool done(struct worker *w)
{
	return atomic_load(&w->n_handled) >= N_EACH;
}

static void count(int signal)
{
	(void)signal;
	atomic_fetch_add(&self->n_handled, 1);
}

/* Each signal interrupts the handling of another one. */
static void count_nested(int signal)
{
	(void)signal;
	nested = 1;
	pthread_kill(pthread_self(), SIGWINCH);
	while (nested)
		;
	atomic_fetch_add(&self->n_handled, 1);
}

static void unnest(int signal)
{
	(void)signal;
	nested = 0;
}

static void count_and_leave(int signal)
{
	atomic_fetch_add(&self->n_handled, 1);
	siglongjmp(escape, signal);
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	atomic_fetch_add(&self->n_handled, 1);
}

static __attribute__((noinline)) uint64_t compute(uint64_t n)
{
	uint64_t x = n;

	for (int i = 0; i < 200; i++)
		x = x & 1 ? 3 * x + 1 : x / 2 + (uint64_t)i;
	return x;
}

static __attribute__((noinline)) uint64_t recurse(uint64_t n)
{
	return n == 0 ? compute(n) : recurse(n - 1) + n;
}

static void run_computing(struct worker *w)
{
	while (!done(w)) {
		for (int i = 0; i < 60; i++)
			w->work += compute(w->work);
		nap();
	}
}

static void run_recursing(struct worker *w)
{
	while (!done(w)) {
		for (int i = 0; i < 60; i++)
			w->work += recurse(70);
		nap();
	}
}

static void run_reading(struct worker *w)
{
	char byte;

	while (!done(w))
		if (read(w->pipe[0], &byte, 1) == 1)
			w->work++;
}

static void run_timer(struct worker *w)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	const struct itimerspec period = { { .tv_nsec = 500000 }, { .tv_nsec = 500000 } };
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		abort();
	timer_settime(timer, 0, &period, NULL);
	while (!done(w)) {
		w->work += compute(w->work);
		nap();
	}
	timer_delete(timer);
}

static void run_faulting(struct worker *w)
{
	static volatile int *volatile nowhere;

	while (!done(w)) {
		if (sigsetjmp(escape, 1) == 0)
			w->work += (uint64_t)*nowhere + 1;
	}
}

static void run_dividing(struct worker *w)
{
	static volatile int zero;

	while (!done(w)) {
		if (sigsetjmp(escape, 1) == 0)
			w->work += (uint64_t)(100 / zero);
	}
}

static void run_trapping(struct worker *w)
{
	while (!done(w)) {
		__asm__ volatile("int3");
		w->work += compute(w->work);
	}
}

static struct worker workers[N_THREADS] = {
	{ .name = "computing", .run = run_computing, .signal = SIGUSR1, .whole_process = true },
	{ .name = "nested", .run = run_recursing, .signal = SIGUSR2 },
	{ .name = "restarted", .run = run_reading, .signal = SIGHUP },
	{ .name = "interrupted", .run = run_reading, .signal = SIGPIPE },
	{ .name = "timer", .run = run_timer },
	{ .name = "faulting", .run = run_faulting },
	{ .name = "dividing", .run = run_dividing },
	{ .name = "trapping", .run = run_trapping },
};

static void set_handler(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	if (sigaction(signal, &action, NULL) < 0)
		abort();
}

static void *run(void *arg)
{
	struct worker *w = arg;
	stack_t stack = { .ss_size = 65536, .ss_sp = malloc(65536) };
	sigset_t set;

	self = w;
	sigaltstack(&stack, NULL);
	/* kill() may choose any thread that does not block the signal. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (!w->whole_process)
		pthread_sigmask(SIG_BLOCK, &set, NULL);
	atomic_store(&w->ready, true);
	w->run(w);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	return NULL;
}

static void set_handlers(void)
{
	struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	set_handler(SIGUSR1, count, SA_RESTART);
	set_handler(SIGUSR2, count_nested, SA_RESTART);
	set_handler(SIGWINCH, unnest, SA_RESTART | SA_ONSTACK);
	set_handler(SIGHUP, count, SA_RESTART);
	set_handler(SIGPIPE, count, 0);
	set_handler(SIGALRM, count, 0);
	set_handler(SIGSEGV, count_and_leave, SA_ONSTACK);
	set_handler(SIGFPE, count_and_leave, 0);
	sigaction(SIGTRAP, &trap, NULL);
}

static void send_signals(struct worker *w)
{
	for (unsigned i = 0; i < N_EACH; i++) {
		if (w->whole_process)
			kill(getpid(), w->signal);
		else
			pthread_kill(w->thread, w->signal);
		while (atomic_load(&w->n_handled) <= i)
			nap();
	}
	/* One that reads waits for a byte, now that nobody interrupts it. */
	if (w->pipe[1] && write(w->pipe[1], "x", 1) != 1)
		abort();
}

/* Return: whether it is named, or nothing is. */
static bool is_wanted(const struct worker *w, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], w->name) == 0)
			return true;
	return argc < 2;
}

static void start(struct worker *w)
{
	if (w->run == run_reading && pipe(w->pipe) < 0)
		abort();
	if (pthread_create(&w->thread, NULL, run, w) != 0)
		abort();
	while (!atomic_load(&w->ready))
		nap();
}

int main(int argc, char **argv)
{
	unsigned n = 0, n_expected = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	set_handlers();
	for (int i = 0; i < N_THREADS; i++)
		if (is_wanted(&workers[i], argc, argv))
			start(&workers[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < N_THREADS; i++)
		if (atomic_load(&workers[i].ready) && workers[i].signal)
			send_signals(&workers[i]);
	for (int i = 0; i < N_THREADS; i++) {
		if (!atomic_load(&workers[i].ready))
			continue;
		pthread_join(workers[i].thread, NULL);
		/* The timer may have expired once too often. */
		n += done(&workers[i]) ? N_EACH : atomic_load(&workers[i].n_handled);
		n_expected += N_EACH;
	}
	printf("signals: %u handled\n", n);
	return n > 0 && n == n_expected ? 0 : 1;
}
