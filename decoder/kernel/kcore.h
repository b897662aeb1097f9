/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kcore
 *
 * The kernel's code as perf keeps it beside a perf.data: DIR/kcore_dir/kcore, an ELF file whose
 * segments say where its bytes are in memory, and kallsyms, the names. The kernel and each module
 * are an object of their own over the same bytes, "[kernel.kallsyms]" and "[module]".
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "decoder/symbol/kallsyms.h"
#include "util/mapfile.h"
#include "util/vec.h"

#define KCORE_SEGMENTS_MAX 4096
#define KCORE_MODULES_MAX  4096

struct kcore_segment {
	uint64_t start, size;
	uint64_t offset; /* in the file */
};

struct kcore_module;

struct kcore {
	struct objects *objects; /* borrowed */
	char *path;
	struct mapfile kallsyms_text;
	struct kallsyms kallsyms;      /* of that text */
	struct kallsyms_source source; /* of the kernel's object */
	const struct object *kernel;   /* NULL: there is no kernel code */
	VEC(struct kcore_segment) segments;
	VEC(struct kcore_module *) modules;
};

/* The mappings of what is asked for; the caller's. */
struct kcore_mappings {
	VEC(struct mapping) list;
};

/*
 * Take what the directory of @objects has; nothing if it has none, or what it has is of no use.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int kcore_init(struct kcore *kcore, struct objects *objects);
void kcore_deinit(struct kcore *kcore);

/* Copy what there is of the @size bytes at @address into @to; what there is not stays. */
void kcore_read(const struct kcore *kcore, uint64_t address, uint64_t size, uint16_t *to);

/* Append all there is, as the kernel's own, since ever. Return: 0 or -ENOMEM. */
_must_check_ int kcore_map_all(const struct kcore *kcore, struct kcore_mappings *mappings);

/*
 * Append what there is from @start on, as that of @name since @time: a module's, as an mmap record
 * of the kernel calls it, by its path or in brackets. Nothing for the kernel itself.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int kcore_map_module(struct kcore *kcore, const char *name, uint64_t start,
				  uint64_t size, uint64_t time, struct kcore_mappings *mappings);
