/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A mutex that a block holds from here on to its end, however it is left: HOLD(&store->lock); */

#include <pthread.h>

#include "base/base.h"

static inline pthread_mutex_t *mutex_hold(pthread_mutex_t *mutex)
{
	(void)pthread_mutex_lock(mutex);
	return mutex;
}

static inline void mutex_releasep(pthread_mutex_t **mutex)
{
	(void)pthread_mutex_unlock(*mutex);
}

#define HOLD(mutex)                                                                   \
	_cleanup_(mutex_releasep) __attribute__((__unused__)) pthread_mutex_t *held = \
	    mutex_hold(mutex)
