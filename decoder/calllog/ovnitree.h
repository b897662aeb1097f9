/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni tree
 *
 * The directories of a trace of ovni, and the streams in them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define OVNITREE_DEPTH_MAX 8    /* directories nested deeper are not looked at */
#define OVNITREE_LOOKS_MAX 4096 /* entries are looked at to find out whether it is a trace */

struct ovnistream {
	char *path, *metadata; /* of its files; owned */
	char *loom;            /* of version 1: name of the directory; owned; NULL: not known */
	bool is_old;           /* it is of version 1: */
	uint32_t pid, tid;     /* as the names of the files say */
};

struct ovnitree {
	VEC(struct ovnistream) streams; /* in the order of their paths */
};

/* Return: whether there is a stream at @path or below. */
bool ovnitree_is(const char *path);

/*
 * Find all streams at @path and below. More than @n_max are refused.
 *
 * Return: 0; or negative errno and @reterr_message, which may be NULL.
 */
_must_check_ int ovnitree_find(struct ovnitree *tree, const char *path, size_t n_max,
			       char **reterr_message);
void ovnitree_deinit(struct ovnitree *tree);
