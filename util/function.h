/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Function
 *
 * Where functions of an ELF file begin, by their names in its symbol tables.
 *
 * The file may come from anybody, so the search is bounded: at most 4,096 sections, 1,024 program
 * headers and 2 million symbols are looked at, through pieces of 64 KiB.
 *
 * Source: elf(5).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define FUNCTION_NAME_MAX 4096 /* with its NUL */

/* A function that was found. */
struct function {
	uint32_t name;   /* index of the name */
	uint64_t offset; /* in the file, of its first byte */
};

/*
 * Find the functions that are called one of the @n_names @names in the ELF file open at @fd, 64-bit
 * or 32-bit. A name that several functions have is found several times, a function that is in two
 * tables once. Names are compared as the tables have them, mangled and without a version.
 *
 * Return: how many were found, at most @max, and @ret_functions; -EBADMSG if the file is no ELF
 *         file of this byte order, or its headers make no sense; or another negative errno.
 */
_must_check_ int function_find(int fd, const char *const *names, size_t n_names,
			       struct function *ret_functions, size_t max);
