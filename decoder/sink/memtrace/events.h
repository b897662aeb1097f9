/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace events
 *
 * With the kernel's code: where the program or the kernel is interrupted, and where it goes on
 * (markers 43 and 44).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/memtrace/thread.h"

/* Control is at @ip, of the program or of the kernel. */
_must_check_ int memtrace_thread_arrive_in_system(struct memtrace_thread *thread, uint64_t ip);
