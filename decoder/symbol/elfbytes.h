/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ELF bytes
 *
 * An ELF file as libelf sees it, whose bytes are read as they are needed: the headers at once, the
 * contents of a section before libelf is asked for them.
 */

#include <gelf.h>
#include <libelf.h>

/* Real files have fewer program headers and sections; a file with more is foreign. */
#define ELFBYTES_HEADERS_MAX SHN_LORESERVE

struct filebytes;

/*
 * Let libelf look at @file, which must outlive the handle. What libelf reads beyond the headers,
 * and was not read from the file before, is zeros.
 *
 * Return: a handle, which the caller ends; NULL if @file is no ELF file of x86's byte order, has
 *         more headers than ELFBYTES_HEADERS_MAX, or its headers cannot be read.
 */
Elf *elfbytes_begin(struct filebytes *file);

static inline void elfbytes_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}
