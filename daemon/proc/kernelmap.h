/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel map
 *
 * Where the code of the running kernel, its modules and its BPF programs is, by /proc/kallsyms and
 * /proc/modules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "util/vec.h"

#define KERNELMAP_PAGE      UINT64_C(4096)
#define KERNELMAP_NAME_SIZE 64u                   /* of a module: MODULE_NAME_LEN is 56 */
#define KERNELMAP_CODE_MAX  ((uint64_t)512 << 20) /* a kernel has some 20 MiB */

struct kernelmap_piece {
	uint64_t start, end; /* whole pages */
	bool is_loose;       /* nothing in it is the kernel's own or a module's */
};

struct kernelmap_module {
	char name[KERNELMAP_NAME_SIZE]; /* in brackets */
	uint64_t start, size;
};

struct kernelmap {
	uint64_t text, etext;                 /* of the kernel itself */
	VEC(struct kernelmap_piece) pieces;   /* all code, by address; none overlaps another */
	VEC(struct kernelmap_module) modules; /* by address */
	size_t n_left_out; /* modules, or pieces of other code, for which there was no room */
};

/*
 * Read the map.
 *
 * @proc_fd: the folder /proc; borrowed
 * @names: gets the lines of /proc/kallsyms that name functions; may be NULL
 * @modules: gets the lines of /proc/modules; may be NULL. Write errors show in the streams.
 *
 * Return: 0; -EPERM or -ENODATA, and @reterr_why, a constant, says what is missing and how to mend
 *         it; or another negative errno, with NULL.
 */
_must_check_ int kernelmap_init(struct kernelmap *map, int proc_fd, FILE *names, FILE *modules,
				const char **reterr_why);
void kernelmap_deinit(struct kernelmap *map);
