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

/*
 * Write the names and pids of processes that have perf events open, as "perf[123], gdb[7]".
 *
 * @root: the directory of /proc; "" for the system's own
 * @except: the pid of a process that is not listed, or 0
 * @ret_text: has @size bytes
 *
 * Return: how many are listed; -EACCES if none is, and there are some that may not be looked into.
 */
_must_check_ int perfusers_list(const char *root, pid_t except, char *ret_text, size_t size);
