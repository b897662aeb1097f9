/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two threads that each hold a lock and wait for the other's. The main thread says so on standard
 * output, and waits for them, in vain.
 */

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;

__attribute__((__noinline__)) static void write_journal(void)
{
	pthread_mutex_lock(&journal);
	pthread_mutex_unlock(&journal);
}

__attribute__((__noinline__)) static void lock_accounts(void)
{
	pthread_mutex_lock(&accounts);
	pthread_mutex_unlock(&accounts);
}

static void *transfer(void *unused)
{
	pthread_mutex_lock(&accounts);
	pthread_barrier_wait(&both_hold_one);
	write_journal();
	pthread_mutex_unlock(&accounts);
	return unused;
}

static void *audit(void *unused)
{
	pthread_mutex_lock(&journal);
	pthread_barrier_wait(&both_hold_one);
	lock_accounts();
	pthread_mutex_unlock(&journal);
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&both_hold_one, NULL, 2);
	if (pthread_create(&threads[0], NULL, transfer, NULL) != 0 ||
	    pthread_create(&threads[1], NULL, audit, NULL) != 0)
		return 1;
	/* Long enough for both to have come to where they wait. */
	(void)nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	puts("deadlocked");
	(void)fflush(stdout);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
