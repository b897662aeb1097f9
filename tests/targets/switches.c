/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * switches RATE: about so many context switches a second, until it is killed. On each CPU that it
 * may run on two threads give each other the word by pipes, in bursts, a thousand of them a second.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BURSTS 1000

struct pair {
	int cpu, rounds;
	int there[2], back[2];
};

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		abort();
}

static void pass(int from, int to)
{
	char c = 0;

	if ((from >= 0 && read(from, &c, 1) != 1) || (to >= 0 && write(to, &c, 1) != 1))
		abort();
}

static void *answer(void *userdata)
{
	const struct pair *p = userdata;

	stay_on(p->cpu);
	for (;;)
		pass(p->there[0], p->back[1]);
}

static void *ask(void *userdata)
{
	const struct pair *p = userdata;
	struct timespec next;

	stay_on(p->cpu);
	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		for (int i = 0; i < p->rounds; i++) {
			pass(-1, p->there[1]);
			pass(p->back[0], -1);
		}
		next.tv_nsec += 1000000000 / BURSTS;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

int main(int argc, char **argv)
{
	const int rate = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t thread;
	cpu_set_t set;

	if (rate <= 0 || sched_getaffinity(0, sizeof(set), &set) < 0) {
		fputs("Usage: switches RATE\n", stderr);
		return 2;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct pair *p;

		if (!CPU_ISSET(cpu, &set))
			continue;
		p = malloc(sizeof(*p));
		if (!p || pipe(p->there) < 0 || pipe(p->back) < 0)
			abort();
		p->cpu = cpu;
		/* There and back. */
		p->rounds =
		    (rate + 2 * BURSTS * CPU_COUNT(&set) - 1) / (2 * BURSTS * CPU_COUNT(&set));
		if (pthread_create(&thread, NULL, ask, p) ||
		    pthread_create(&thread, NULL, answer, p))
			abort();
	}
	(void)pause();
	return 0;
}
