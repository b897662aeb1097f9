/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Task rings
 *
 * The task records of all CPUs, each of which has a ring of its own, as the one stream that a
 * source gives: in the order of their times.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct cpus;

/*
 * Take what was written up to @until, on the records' clock; and, if CPUs were opened anew, a
 * record that says that some were lost. @ret_bytes is whole records, the caller frees it; NULL if
 * there are none.
 *
 * Return: 0; or -ENOMEM: what was taken is lost, the next call says so.
 */
_must_check_ int taskrings_drain(struct cpus *cpus, uint64_t until, uint8_t **ret_bytes,
				 size_t *ret_size);
