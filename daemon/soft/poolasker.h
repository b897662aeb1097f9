/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool asker
 *
 * Asks the collector (daemon/collector/link.h) whether a process has a pool mapped, which ptd may
 * not see of other users' processes. Any thread may ask.
 */

#include <stdint.h>

#include "base/base.h"

struct poolasker;

/* Return: 0, or negative errno. */
_must_check_ int poolasker_new(const char *runtime_dir, struct poolasker **ret_asker);
struct poolasker *poolasker_free(struct poolasker *asker);

DEFINE_CLEANUP(struct poolasker *, poolasker_free);

/* Return: 1 if the process @pid has the memory of @pool_fd mapped; 0 if not, or it has ended; or
 * negative errno if that cannot be found out now. */
_must_check_ int poolasker_ask(struct poolasker *asker, uint32_t pid, int pool_fd);
