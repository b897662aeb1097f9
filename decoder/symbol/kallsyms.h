/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kallsyms
 *
 * The names of the kernel's code, as /proc/kallsyms tells them: lines of an address, a letter for
 * the kind, a name, and of a module's a tab and the module's name in brackets.
 * The text is parsed once for the kernel and all its modules, each of which is an object.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/symtab.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct kallsyms_name {
	uint64_t address;
	const char *name;   /* in the file's bytes, as is: */
	const char *module; /* in brackets; of the kernel, "" */
	size_t module_size;
	uint16_t name_size;
};

struct kallsyms {
	VEC(struct kallsyms_name) names; /* of functions, in the order of the file */
	VEC(uint32_t) by_module;         /* indices in names, those of a module together */
};

/*
 * Parse the file, whose bytes must outlive @ret_kallsyms. Lines that make no sense are left out.
 *
 * Return: 0, and deinit it; -ENOMEM.
 */
_must_check_ int kallsyms_parse(const struct mapfile *file, struct kallsyms *ret_kallsyms);
void kallsyms_deinit(struct kallsyms *kallsyms);

/*
 * Add the functions of @object: of a module its own, of the kernel all. Their names are the file's.
 *
 * Return: 0; -ENOMEM.
 */
_must_check_ int kallsyms_read(struct symtab *symtab, const struct object *object,
			       const struct kallsyms *kallsyms);
