/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * rounds N: two threads work N rounds each, of which every function makes a known number of calls:
 *
 *	work		calls round_of() N times
 *	round_of	calls first() once, second() twice, and descend(3) once
 *	second		calls third() once
 *	descend(n)	calls descend(n - 1), if n is not 0
 *
 * So a round has 10 calls with its own. In round 77 of each thread, second() calls third() 2001
 * times more, and in round 88 each thread takes a signal, whose handler is on_signal().
 */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define NOINLINE __attribute__((__noinline__, __noclone__))

static long n_rounds;

NOINLINE static void third(void)
{
	__asm__ volatile("nop; nop");
}

NOINLINE static void second(long n_more)
{
	third();
	while (n_more-- > 0)
		third();
	__asm__ volatile("");
}

NOINLINE static void first(void)
{
	__asm__ volatile("nop");
}

NOINLINE static void descend(int n)
{
	if (n > 0)
		descend(n - 1);
	__asm__ volatile("");
}

NOINLINE static void on_signal(int number)
{
	__asm__ volatile("" : : "r"(number));
}

NOINLINE static void round_of(long i)
{
	if (i == 88)
		(void)raise(SIGUSR1);
	first();
	second(i == 77 ? 2001 : 0);
	second(0);
	descend(3);
	__asm__ volatile("");
}

NOINLINE static void *work(void *arg)
{
	for (long i = 0; i < n_rounds; i++)
		round_of(i);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	n_rounds = argc > 1 ? atol(argv[1]) : 1000;
	(void)signal(SIGUSR1, on_signal);
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		return 1;
	(void)work(NULL);
	return pthread_join(thread, NULL);
}
