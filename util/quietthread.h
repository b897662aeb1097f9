/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Quiet thread
 *
 * A thread that gets no signals: all are blocked from its beginning on, and come to the threads of
 * the program that expect them.
 */

#include <pthread.h>

#include "base/base.h"

/*
 * Start a thread that calls @run.
 *
 * @attr: may be NULL
 *
 * Return: 0, or negative errno.
 */
_must_check_ int quietthread_start(pthread_t *ret_thread, const pthread_attr_t *attr,
				   void *(*run)(void *userdata), void *userdata);
