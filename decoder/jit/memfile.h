/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory files
 *
 * The files in DIR/mem of a snapshot, which have code that is in no file of the recorded programs:
 * the code log of each program (named PID-START.code), and one file with the anonymous memory of
 * processes as it was when the snapshot was taken (named "pages").
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/perfmap.h"
#include "util/vec.h"

#define MEMFILE_OBJECT_NAME "[anon]"
#define MEMFILES_MAX        (1u << 16) /* code logs; more are left out */

struct memfile {
	uint32_t pid;
	uint64_t start; /* when the program began, in ns */
};

struct memfiles {
	struct objects *objects;  /* borrowed */
	VEC(struct memfile) logs; /* by pid, then start */
	size_t n_left_out;        /* logs beyond MEMFILES_MAX */
};

/*
 * List the code logs in the snapshot of @objects; the list is empty if @objects have no snapshot.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int memfiles_init(struct memfiles *files, struct objects *objects);
void memfiles_deinit(struct memfiles *files);

/*
 * Add @file to the objects, under the name "[anon]".
 *
 * Return: 0, and @ret_object, which belongs to the objects; or negative errno.
 */
_must_check_ int memfiles_load(const struct memfiles *files, const struct memfile *file,
			       struct object **ret_object);

/* The same for the file of memory. Return: also -ENOENT if there is none. */
_must_check_ int memfiles_load_pages(const struct memfiles *files, struct object **ret_object);

/* Let the code of @object have the names that perf maps give to that of process @pid; see
 * perfmap_source_init(). @ret_names is what @object points to then; it must not move. */
void memfile_set_names(struct object *object, uint32_t pid, struct perfmaps *perfmaps, bool is_last,
		       struct perfmap_source *ret_names);
