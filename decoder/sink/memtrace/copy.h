/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace copy
 *
 * Writes runs by copying the records of their expansion, where nothing else has to be written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/memtrace/expansion.h"
#include "decoder/sink/memtrace/file.h"
#include "decoder/sink/memtrace/thread.h"

/*
 * Write runs of @batch, from run @i on and before run @end, by copying their records from
 * @expansion: those that follow the run before, for as long as nothing else has to be written but
 * the calls that stand before run @i. @known is of this batch and of thread->file. @ret_n is their
 * number, which may be 0.
 */
_must_check_ int memtrace_thread_copy(struct memtrace_thread *thread, const struct ptd_batch *batch,
				      const struct memtrace_expansion *expansion,
				      struct memtrace_known *known, size_t i, size_t end,
				      size_t *ret_n);
