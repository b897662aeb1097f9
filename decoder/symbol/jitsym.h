/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitsym
 *
 * The names of code that no ELF file names: those in a jitdump, and those in a perf map, the text
 * file of a JIT that tells no more than names ("7f00a000 1c JS:~fib" in a line).
 */

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/symtab.h"

/*
 * Add the names that @object, which must outlive @symtab, has of this kind. Lines that make no
 * sense are left out.
 *
 * Return: 0; -ENOMEM.
 */
_must_check_ int jitsym_read(struct symtab *symtab, const struct object *object);
