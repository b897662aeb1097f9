/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Demangle
 *
 * C++ and Rust names as their authors wrote them; by libiberty.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

#define DEMANGLE_MAX 4096

/*
 * Write the readable form of @name.
 *
 * Return: its length; 0, and @ret_text is undefined, if it is not mangled, or so long, or so
 *         intricate, that the mangled form is the better one to show.
 */
size_t demangle(const char *name, size_t size, char ret_text[static DEMANGLE_MAX]);
