/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitsym
 *
 * The names of code that no ELF file names: those in a jitdump, and those in a perf map.
 */

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/perfmap.h"
#include "decoder/symbol/symtab.h"

/*
 * Add the names that @object has of this kind. It must outlive @symtab.
 *
 * @perfmap: what its perf map says, whose file must outlive @symtab, too; or NULL
 *
 * Return: 0; -ENOMEM.
 */
_must_check_ int jitsym_read(struct symtab *symtab, const struct object *object,
			     const struct perfmap *perfmap);
