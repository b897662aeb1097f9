/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PT users
 *
 * Asks the collector which program may have Intel PT (daemon/helper/collector/work.h).
 */

#include <stddef.h>

#include "base/base.h"

/* Write what it says to @ret_text, which has @size bytes. The collector's socket is in
 * @runtime_dir. */
void ptusers_list(const char *runtime_dir, char *ret_text, size_t size);
