/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that runs until its standard input ends: 6 threads that compute, sleep, yield, and are
 * sent signals. Each does the same work again and again, so what it prints at the end does not
 * depend on how long it ran, but does on every instruction being executed as ever.
 */

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 6
#define N_STEPS   1500

struct worker {
	pthread_t thread;
	unsigned number;
	uint64_t sum; /* of its work; 0: none done yet */
	bool changed;
	uint64_t marks;
};

static atomic_bool stop;
static atomic_uint n_signals;

static uint64_t add(uint64_t x)
{
	return x + UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t fold(uint64_t x)
{
	return x ^ x >> 29;
}

static uint64_t spread(uint64_t x)
{
	return x * UINT64_C(0xbf58476d1ce4e5b9);
}

static uint64_t turn(uint64_t x)
{
	return x % 3 ? (x << 17 | x >> 47) : x + 1;
}

static uint64_t (*volatile const steps[])(uint64_t) = { add, fold, spread, turn };

/* Every call is an indirect one, so that there is much PT of few instructions. */
static uint64_t work(unsigned seed)
{
	uint64_t x = seed;

	for (unsigned i = 0; i < N_STEPS; i++)
		x = steps[(x >> 7 ^ i) % 4](x);
	return x | 1;
}

/* Makes this round unlike any other of the thread. */
static uint64_t mark(unsigned round)
{
	uint64_t x = round;

	for (unsigned bit = 0; bit < 32; bit++)
		x = steps[round >> bit & 1](x);
	return x;
}

static void on_signal(int signal)
{
	(void)signal;
	atomic_fetch_add(&n_signals, 1);
	(void)work(99);
}

static void *run(void *userdata)
{
	struct worker *w = userdata;

	for (unsigned i = 0; i == 0 || !atomic_load(&stop); i++) {
		const uint64_t sum = work(w->number);

		w->changed |= w->sum != 0 && w->sum != sum;
		w->sum = sum;
		w->marks += mark(i);
		if (i % (w->number > 0 ? 2 : 64) == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 * (1 + w->number) }, NULL);
		else if (w->number > 0)
			sched_yield();
	}
	return NULL;
}

int main(void)
{
	struct worker workers[N_THREADS] = {};
	sigset_t usr1;
	char byte;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_RESTART },
		  NULL);
	for (unsigned i = 0; i < N_THREADS; i++) {
		workers[i].number = i;
		pthread_create(&workers[i].thread, NULL, run, &workers[i]);
	}
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);

	/* Whoever writes to our input makes signals. */
	while (read(STDIN_FILENO, &byte, 1) > 0)
		for (unsigned i = 0; i < N_THREADS; i++)
			pthread_kill(workers[i].thread, SIGUSR1);
	while (atomic_load(&n_signals) == 0)
		pthread_kill(workers[0].thread, SIGUSR1);

	atomic_store(&stop, true);
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		printf("%u: %#" PRIx64 "%s\n", i, workers[i].sum,
		       workers[i].changed ? " CHANGED" : "");
	}
	return 0;
}
