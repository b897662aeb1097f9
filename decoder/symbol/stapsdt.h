/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Static probes
 *
 * The probes of an ELF file (USDT): a nop where a program says what happens, and a note
 * (.note.stapsdt) that gives it a name. The format is that of SystemTap's <sys/sdt.h>, version 3:
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.
 */

#include <stddef.h>

#include "base/base.h"
#include "ptd/decode.h"

struct filebytes;

/* The probes of one file, by address. */
struct stapsdt {
	struct ptd_probe *items; /* owned; their texts are the file's */
	size_t n;
};

/*
 * Read the probes of @file, which must outlive them. Malformed notes, and all behind one whose size
 * is not plausible, are left out.
 *
 * Return: 0; or -ENOMEM, and there is nothing to deinit.
 */
_must_check_ int stapsdt_read(struct filebytes *file, struct stapsdt *ret_probes);
void stapsdt_deinit(struct stapsdt *probes);
