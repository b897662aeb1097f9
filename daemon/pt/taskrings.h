/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Task rings
 *
 * Each CPU has a ring of task records. This makes of all of them the one stream that a source
 * gives, in the order of time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct cpus;

/*
 * Take the records up to the time @until (ns on the records' clock) out of the rings. If CPUs were
 * opened anew, or a ring may have had no room, a record that says that some were lost is among
 * them.
 *
 * @ret_bytes: whole records, which the caller frees; NULL if there are none
 *
 * Return: 0; or -ENOMEM: what was taken is lost, and the next call says so.
 */
_must_check_ int taskrings_drain(struct cpus *cpus, uint64_t until, uint8_t **ret_bytes,
				 size_t *ret_size);
