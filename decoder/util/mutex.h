/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mutexes that are held for less time than it takes to put a thread to sleep and to wake it: for a
 * look into a table, or to add to one. A thread that waits for such a mutex looks at it again for a
 * while before it sleeps.
 */

#include <pthread.h>

static inline void mutex_init_short(pthread_mutex_t *mutex)
{
	*mutex = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
}
