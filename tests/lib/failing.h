/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Failing
 *
 * Makes calls of the allocator and of the system fail, one after another, in the unit's own
 * process. The linker (--wrap, see the Makefile's FAILING) leads those that our code makes here;
 * what libraries call inside themselves does not fail, and neither do calls of other threads.
 */

#include <stdbool.h>

/* What is tested: returns 0, or negative errno. */
typedef int (*failing_call_fn)(void *userdata);

/* Called after a call that returned 0: sees that all is there, and frees it. */
typedef void (*failing_check_fn)(void *userdata);

/*
 * Call @call with its first inner call failing, then with its second, and so on, until it makes
 * none that could fail. Each time it must return an error, or do without: then @check is called,
 * which sees what it would see anyway. Neither may leave memory or descriptors behind. The last
 * time, when nothing fails, @call must return 0.
 */
void failing_each(failing_call_fn call, failing_check_fn check, void *userdata);

/* Return: the name of the call that failed; NULL: none did. */
const char *failing_name(void);

/* Return: whether it was memory that could not be had. That is no property of an input: code
 * that has less to say for it returns an error. */
bool failing_is_memory(void);
