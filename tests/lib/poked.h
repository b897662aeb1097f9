/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel code
 *
 * The code of the kernel: the copy in the directory of a recording, the records about code that
 * changed, came and went, and perf.data's section of BPF programs. Only tests use this reader,
 * which shares no code with the decoder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "tests/lib/recordwalk.h"
#include "util/mapfile.h"

#define POKED_KERNEL (UINT64_C(1) << 63) /* its addresses begin there */

struct poked;

/*
 * Read the kernel code of a recording.
 *
 * @dir: the directory of the recording; NULL: it has none
 * @data: the perf.data file; borrowed
 * @walk: its records, by time; borrowed
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int poked_new(const char *dir, const struct mapfile *data,
			   const struct recordwalk *walk, struct poked **ret_poked);
struct poked *poked_free(struct poked *poked);

/*
 * Check whether the @size bytes at @bytes can have been at @address at @time. Each byte must be
 * what the last change before left and the next change found. Where there was no change, it must be
 * that of the copy, which perf makes before all changes and ptd after all. No function may have
 * been removed from there, or be loaded there only later.
 *
 * Return: whether they can; if so, [@from, @to) is reduced to the times for which that holds.
 */
bool poked_have(const struct poked *poked, uint64_t time, uint64_t address, const uint8_t *bytes,
		size_t size, uint64_t *from, uint64_t *to);

DEFINE_CLEANUP(struct poked *, poked_free);
