/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kcore
 *
 * The copy of the kernel's code that perf, or ptd, puts beside a recording: DIR/kcore_dir/kcore, an
 * ELF file whose segments state the addresses of its bytes, and DIR/kcore_dir/kallsyms, the
 * symbols. The kernel is one object ("[kernel.kallsyms]"), each module is another ("[module]"); all
 * of them refer to the same file.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/symbol/kallsyms.h"
#include "util/mapfile.h"
#include "util/vec.h"

#define KCORE_SEGMENTS_MAX 4096
#define KCORE_MODULES_MAX  4096

struct kcore_segment {
	uint64_t start, size;
	uint64_t offset; /* of its bytes in the file */
};

struct kcore_module;

struct kcore {
	struct objects *objects; /* borrowed */
	struct mapfile kallsyms_text;
	struct kallsyms kallsyms;      /* of that text */
	struct kallsyms_source source; /* of the kernel's object */
	const struct object *kernel;   /* NULL: there is no kernel code */
	VEC(struct kcore_segment) segments;
	VEC(struct kcore_module *) modules;
	size_t n_segments_left_out; /* beyond KCORE_SEGMENTS_MAX; there is no code of theirs */
	size_t n_modules_left_out;  /* records of modules that there is no room for; their code is
				     * part of the kernel's object */
};

/* Mappings that are appended to; the caller frees the list. */
struct kcore_mappings {
	VEC(struct mapping) list;
};

/*
 * Open the copy in the directory of @objects, which is borrowed. If there is none, or it cannot be
 * used, the kcore is empty.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int kcore_init(struct kcore *kcore, struct objects *objects);
void kcore_deinit(struct kcore *kcore);

/* Copy the @size bytes at @address to @to, one value each. Values that the kcore does not have are
 * left as they are. */
void kcore_read(const struct kcore *kcore, uint64_t address, uint64_t size, uint16_t *to);

/* Append a mapping of each segment, from time 0 on, as the kernel's code. Return: 0 or -ENOMEM. */
_must_check_ int kcore_map_all(const struct kcore *kcore, struct kcore_mappings *mappings);

/*
 * Append mappings of the bytes that the kcore has from @start on, @size at most, as the code of the
 * module @name from @time (ns) on. @name is what an mmap record of the kernel calls the module: a
 * path, or the name in brackets. If it names the kernel itself, nothing is appended.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int kcore_map_module(struct kcore *kcore, const char *name, uint64_t start,
				  uint64_t size, uint64_t time, struct kcore_mappings *mappings);
