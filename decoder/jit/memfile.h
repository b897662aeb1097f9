/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory files
 *
 * The files in DIR/mem of a snapshot, which have code that is in no file of the recorded programs.
 * There are two kinds: a piece of a process's anonymous memory as it was when the snapshot was
 * taken (named PID-ADDRESS), and the code log of a program (named PID-START.code).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/perfmap.h"
#include "util/vec.h"

#define MEMFILE_OBJECT_NAME "[anon]"
#define MEMFILES_MAX        (1u << 16) /* of each kind; more are left out */

enum memfile_kind {
	MEMFILE_PIECE, /* bytes of anonymous memory */
	MEMFILE_LOG,   /* see codelog.h */
	_MEMFILE_KINDS,
};

struct memfile {
	uint32_t pid;
	uint64_t number; /* the address of a piece; when the program of a log began, in ns */
};

struct memfiles {
	struct objects *objects; /* borrowed */
	struct memfile_list {
		VEC(struct memfile) files; /* by pid, then number */
	} kinds[_MEMFILE_KINDS];
	size_t n_left_out; /* files beyond MEMFILES_MAX of a kind */
};

/*
 * List the files in the snapshot of @objects; the lists are empty if @objects have no snapshot.
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
_must_check_ int memfiles_load(const struct memfiles *files, enum memfile_kind kind,
			       const struct memfile *file, struct object **ret_object);

/* Let the code of @object have the names that perf maps give to that of process @pid; see
 * perfmap_source_init(). @ret_names is what @object points to then; it must not move. */
void memfile_set_names(struct object *object, uint32_t pid, struct perfmaps *perfmaps, bool is_last,
		       struct perfmap_source *ret_names);
