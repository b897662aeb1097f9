/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Executes static probes, of which some are guarded by a semaphore that nobody sets, and says how
 * often it has executed each: "PROVIDER:NAME COUNT". Two threads do so.
 */

#include <pthread.h>
#include <stdio.h>

#include "ptd/mark.h"

/* What <sys/sdt.h> makes of a probe with arguments and a semaphore. */
#define GUARDED_PROBE(name, value)                                                      \
	__asm__ volatile("1: nop\n.pushsection .note.stapsdt, \"\", @note\n.balign 4\n" \
			 ".4byte 8, 3f - 2f, 3\n.asciz \"stapsdt\"\n"                   \
			 "2: .8byte 1b, _.stapsdt.base, " #name "_semaphore\n"          \
			 ".asciz \"test\"\n.asciz \"" #name "\"\n.asciz \"-4@%0\"\n"    \
			 "3: .balign 4\n.popsection" ::"nor"(value))

__attribute__((visibility("hidden"))) volatile unsigned short guarded_semaphore;
__attribute__((visibility("hidden"), used)) volatile unsigned short unread_semaphore;

static unsigned long n_even, n_odd, n_unread, n_guarded;

__attribute__((noinline)) static void step(unsigned long i)
{
	if (i % 2 == 0) {
		PTD_MARK(test, even);
		(void)__atomic_add_fetch(&n_even, 1, __ATOMIC_RELAXED);
	} else if (i % 3 == 0) {
		PTD_MARK(test, odd);
		(void)__atomic_add_fetch(&n_odd, 1, __ATOMIC_RELAXED);
	}
	if (guarded_semaphore) {
		GUARDED_PROBE(guarded, (int)i);
		n_guarded++;
	}
	if (i % 100 == 7) {
		GUARDED_PROBE(unread, (int)i);
		(void)__atomic_add_fetch(&n_unread, 1, __ATOMIC_RELAXED);
	}
}

static void *work(void *n)
{
	for (unsigned long i = 0; i < *(unsigned long *)n; i++)
		step(i);
	PTD_MARK(test, done);
	return NULL;
}

int main(void)
{
	unsigned long n = 1000, n_other = 600;
	pthread_t other;

	if (pthread_create(&other, NULL, work, &n_other) != 0)
		return 1;
	(void)work(&n);
	(void)pthread_join(other, NULL);
	printf("test:done 2\ntest:even %lu\ntest:guarded %lu\ntest:odd %lu\ntest:unread %lu\n",
	       n_even, n_guarded, n_odd, n_unread);
	return 0;
}
