/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ptusers
 *
 * Who may be using Intel PT: one at a time can have it on a CPU, and the kernel does not say who.
 */

#include <stddef.h>

#include "base/base.h"

/* Write the names and pids of other processes that have perf events open: "perf[123], gdb[7]". If
 * there are none, or they are others' and may not be looked into, it says so. */
void ptusers_list(char *ret_text, size_t size);
