/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mini debuginfo
 *
 * A symbol table that is left in an object although it was stripped: the section .gnu_debugdata is
 * an ELF file with a .symtab, compressed by xz. Fedora's packages have it; Debian's do not.
 */

#include <stdint.h>

#include "base/base.h"

/* Once decompressed. Real ones have less than 10 MiB; a larger one is not used. */
#define MINIDEBUG_MAX (UINT64_C(32) << 20)

struct filebytes;

struct minidebug {
	struct filebytes *file; /* the ELF file; NULL: there is none */
	uint8_t *bytes;         /* of @file */
};

/*
 * Decompress the mini debuginfo of the ELF file @file. What cannot be decompressed is left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int minidebug_read(struct filebytes *file, struct minidebug *ret_minidebug);
void minidebug_deinit(struct minidebug *minidebug);
