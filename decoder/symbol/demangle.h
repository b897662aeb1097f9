/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Demangling
 *
 * Turns mangled C++ and Rust names into what their authors wrote. libiberty does the work.
 */

#include <stddef.h>

#define DEMANGLE_MAX 4096

/*
 * Write the readable form of @name, which has @size bytes and no end mark.
 *
 * Return: the length of @ret_text; 0 if @name is not mangled, or if the readable form is too long
 *         to be shown. @ret_text is undefined then.
 */
size_t demangle(const char *name, size_t size, char ret_text[static DEMANGLE_MAX]);
