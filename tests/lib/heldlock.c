/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

/* The linker redirects the units' calls to this function. A mutex that is not locked is unlocked
 * without an error, and what it protects is not protected. */
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (pthread_mutex_trylock(mutex) != EBUSY) {
		(void)fputs("a mutex is unlocked that nobody has locked\n", stderr);
		abort();
	}
	return __real_pthread_mutex_unlock(mutex);
}
