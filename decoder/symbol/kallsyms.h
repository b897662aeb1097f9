/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kallsyms
 *
 * The names of the kernel's code, as /proc/kallsyms tells them: lines of an address, a letter for
 * the kind, a name, and of a module's a tab and the module's name in brackets.
 */

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/symtab.h"

/*
 * Add the functions that @object's kallsyms, if it has one, tells of: of a module its own, of the
 * kernel all. Their names are the file's. Lines that make no sense are left out.
 *
 * Return: 0; -ENOMEM.
 */
_must_check_ int kallsyms_read(struct symtab *symtab, const struct object *object);
