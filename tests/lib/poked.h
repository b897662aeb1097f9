/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Poked
 *
 * Code of the kernel's: what the directory of a recording has of it, and what records say of how it
 * changed, came and went, and perf.data's section of BPF programs. Read for the tests alone,
 * without the decoder's code.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "tests/lib/walk.h"
#include "util/mapfile.h"

#define POKED_KERNEL (UINT64_C(1) << 63) /* its addresses begin there */

struct poked;

/*
 * @dir is the recording's; NULL: it has none. @walk, by time, is borrowed, like @data, the file it
 *	is of.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int poked_new(const char *dir, const struct mapfile *data, const struct walk *walk,
			   struct poked **ret_poked);
struct poked *poked_free(struct poked *poked);

/*
 * Can the @size bytes at @bytes have been at @address at @time? Each must be what the last change
 * left and the next one found, as far as there are any; else what the copy has, made before all if
 * the recorder was perf, and after all if ptd; and no function may have gone from there, or be
 * still to come.
 *
 * Return: whether; and if so, for which times that holds, within @from and @to (exclusive).
 */
bool poked_have(const struct poked *poked, uint64_t time, uint64_t address, const uint8_t *bytes,
		size_t size, uint64_t *from, uint64_t *to);

DEFINE_CLEANUP(struct poked *, poked_free);
