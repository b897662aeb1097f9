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

/*
 * Kernel lack: why the code of the kernel, or where it is, cannot be read: what is missing, and how
 * to mend it. Each is an outcome that an administrator can change, not an error.
 */

enum kernellack {
	KERNELLACK_NONE,
	KERNELLACK_NO_NAMES,    /* /proc/kallsyms is not there */
	KERNELLACK_EMPTY_NAMES, /* it is empty */
	KERNELLACK_NO_ADDRESS,  /* it shows no addresses */
	KERNELLACK_ODD_NAMES,   /* it has no beginning and end of the kernel's code */
	KERNELLACK_NO_CODE,     /* /proc/kcore cannot be opened, or has no code */
	KERNELLACK_ODD_CODE,    /* it is no ELF file */
	_KERNELLACKS,
};

/* Return: a constant that says so; NULL for KERNELLACK_NONE. */
const char *kernellack_text(enum kernellack lack);

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

/* Copies of what is read. Write errors show in the streams. */
struct kernelmap_texts {
	FILE *names;       /* the lines of /proc/kallsyms that name functions; borrowed */
	FILE *modules;     /* the lines of /proc/modules; borrowed */
	uint64_t size_max; /* bytes that are written at most */
};

/*
 * Read the map.
 *
 * @proc_fd: the folder /proc; borrowed
 * @texts: where to copy it to; NULL: nowhere
 *
 * Return: 0, also if the map cannot be had: then it is empty, and @ret_lack says why; -EFBIG if
 *         more than @texts->size_max bytes would be written; or another negative errno.
 */
_must_check_ int kernelmap_init(struct kernelmap *map, int proc_fd, struct kernelmap_texts *texts,
				enum kernellack *ret_lack);
void kernelmap_deinit(struct kernelmap *map);
