/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kallsyms
 *
 * The names of the kernel's code, in the format of /proc/kallsyms: lines of an address, a letter
 * for the kind, and a name; in the lines of a module, a tab and the module's name in brackets
 * follow. The kernel and each module are objects of their own, so the text is parsed once, when the
 * first name is asked for, and each of them has a source over its lines.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/source.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct kallsyms_name {
	uint64_t address;
	const char *name;   /* in the text, like: */
	const char *module; /* with its brackets; empty in the lines of the kernel itself */
	size_t module_size;
	uint16_t name_size;
};

struct kallsyms {
	const struct mapfile *text;      /* borrowed */
	VEC(struct kallsyms_name) names; /* of functions, in the order of the text */
	VEC(uint32_t) by_module;         /* indices into names, those of a module side by side */
	bool is_parsed;
};

/*
 * Parse the text, unless that has been done. Malformed lines are left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int kallsyms_parse(struct kallsyms *kallsyms);
void kallsyms_deinit(struct kallsyms *kallsyms);

struct kallsyms_source {
	struct symbol_source source;
	struct kallsyms *kallsyms; /* borrowed, like: */
	const char *module;
};

/*
 * Make the source of a module, or of the kernel, to which the names of all modules belong as well.
 *
 * @module: the module's name in brackets; NULL: the kernel
 */
void kallsyms_source_init(struct kallsyms_source *source, struct kallsyms *kallsyms,
			  const char *module);
void kallsyms_source_deinit(struct kallsyms_source *source);
