/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf users
 *
 * Guesses which program has Intel PT if perf_event_open(2) fails with EBUSY. One program at a time
 * can have it on a CPU, and the kernel does not say which.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/base.h"

#define PERFUSERS_SIZE 512u

/* Write the names and pids of processes other than @except that have perf events open, as
 * "perf[123], gdb[7]", to @ret_text, which has @size bytes. If there are none, or they may not be
 * looked at, the text says so. */
void perfusers_list(pid_t except, char *ret_text, size_t size);
