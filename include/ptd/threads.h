/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Threads
 *
 * Threads that work for the library. A program makes them once, and passes them to decoders
 * (ptd_options.threads). The thread that calls the library is one of them; while it waits for the
 * others, it does their work. All calls that use the same struct ptd_threads must come from one
 * thread at a time.
 *
 * The other threads block all signals.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTD_THREADS_MAX 256

struct ptd_threads;

/*
 * Start @n - 1 threads. If @n is 0, there are as many as CPUs that the process may use, or fewer if
 * no more can be started.
 *
 * Return: 0; -EINVAL (more than PTD_THREADS_MAX); or negative errno.
 */
int ptd_threads_new(size_t n, struct ptd_threads **ret_threads);

/* End the threads. What they were passed to must have been freed. Return: NULL. */
struct ptd_threads *ptd_threads_free(struct ptd_threads *threads);

#ifdef __cplusplus
}
#endif
