/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/quietthread.h"

#include <signal.h>

int quietthread_start(pthread_t *ret_thread, const pthread_attr_t *attr,
		      void *(*run)(void *userdata), void *userdata)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret_thread, attr, run, userdata);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}
