/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace directory
 *
 * What lies in a drmemtrace directory. The files of a trace are in its subdirectory "trace" or, if
 * there is none, in the directory itself; every file there is part of the trace, but for some whose
 * names are known.
 */

#include <stdbool.h>

#include "base/base.h"
#include "util/vec.h"

/* More files than this are refused. */
#define TRACEDIR_FILES_MAX (1u << 17)

enum tracedir_kind {
	TRACEDIR_TRACE,
	TRACEDIR_SERIAL_SCHEDULE,
	TRACEDIR_CPU_SCHEDULE,
	TRACEDIR_ODD, /* no regular file */
};

struct tracedir_entry {
	char *path;
	enum tracedir_kind kind;
};

struct tracedir {
	char *path;                         /* in which the files are */
	VEC(struct tracedir_entry) entries; /* in the order of their names */
};

/*
 * List the directory @dir.
 *
 * Return: 0; -EFBIG if there are too many files; or negative errno, with @reterr_path (the caller
 *         frees) naming what could not be read.
 */
_must_check_ int tracedir_read(const char *dir, struct tracedir *ret_tracedir, char **reterr_path);
void tracedir_deinit(struct tracedir *tracedir);

/* Return: whether the directory at @path has the files of a trace, and no other recording. */
bool tracedir_is(const char *path);

/*
 * Find the file @name of the directory @dir: in it, or in its subdirectory "aux", "raw" or "trace".
 *
 * Return: 0 and @ret_path, which the caller frees; -ENOENT or -ENOMEM.
 */
_must_check_ int tracedir_find(const char *dir, const char *name, char **ret_path);
