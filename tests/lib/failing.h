/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Failing
 *
 * Makes calls of the allocator and of the system fail, one after another, in the unit's own
 * process. The linker (--wrap, see FAILING in the Makefile) redirects the calls of our code to this
 * module; calls that libraries make, and calls of other threads, do not fail.
 *
 * A unit that passed, but has not freed all memory that our code and the unit itself allocated,
 * fails when it exits.
 *
 * Rows that are called calls_that_fail take much of the time of some units. With PTD_FAILING=only
 * in its environment a unit runs only these, with PTD_FAILING=not only the others.
 */

#include <stdbool.h>

/* The function under test. Return: 0, or negative errno. */
typedef int (*failing_call_fn)(void *userdata);

/* Checks the results of a call that returned 0, and frees them. */
typedef void (*failing_check_fn)(void *userdata);

/*
 * Call @call with its first inner call failing, then with its second, and so on, until no inner
 * call is left to fail. Each time @call must either return an error or return 0 with all of its
 * results, which @check then checks. Neither may leak memory or descriptors. The last time, when
 * nothing fails, @call must return 0.
 */
void failing_each(failing_call_fn call, failing_check_fn check, void *userdata);

/* Return: the name of the call that failed; NULL: none did. */
const char *failing_name(void);

/*
 * Return: whether the call that failed was an allocation. A lack of memory says nothing about the
 *         input, so the code under test must return an error then, and not a result with less in
 *         it.
 */
bool failing_is_memory(void);
