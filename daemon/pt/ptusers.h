/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PT users
 *
 * Guesses which program has Intel PT when opening it fails with EBUSY. One program at a time can
 * have it on a CPU, and the kernel does not say which.
 */

#include <stddef.h>

#include "base/base.h"

/* Write the names and pids of other processes that have perf events open, as "perf[123], gdb[7]",
 * to @ret_text, which has @size bytes. If there are none, or they may not be looked at, the text
 * says so. */
void ptusers_list(char *ret_text, size_t size);
