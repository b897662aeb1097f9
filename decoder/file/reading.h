/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reading
 *
 * What all steps share by which an input is read: how much they may put into temporary files, how
 * far they have come, which threads help, and which files they have read. A NULL reading has no
 * limits and reports no progress.
 */

#include <sys/stat.h>

#include "base/base.h"
#include "decoder/util/spill.h"
#include "util/progress.h"
#include "util/vec.h"

struct pieces;
struct ptd_threads;

/* A file as it was when it was opened. */
struct reading_file {
	char *path;
	dev_t device;
	ino_t inode;
	off_t size;
};

struct reading {
	struct spills spills;
	struct progress progress;
	struct ptd_threads *threads; /* borrowed; or NULL */
	VEC(struct reading_file) files;

	bool is_part; /* a part of the PT is read: the pieces of a snapshot's data are checked */
	bool all_processes;    /* not only those that a snapshot is about, which make it a part */
	struct pieces *pieces; /* of that; NULL: it is checked whole */
};

void reading_deinit(struct reading *reading);

static inline struct spills *reading_spills(struct reading *reading)
{
	return reading ? &reading->spills : NULL;
}

static inline struct progress *reading_progress(struct reading *reading)
{
	return reading ? &reading->progress : NULL;
}

/* Note the file at @path, which is @st. Return: 0 or -ENOMEM. */
_must_check_ int reading_note(struct reading *reading, const char *path, const struct stat *st);

/*
 * Return: the file that has become shorter since it was noted, and @ret_size, which it has now;
 *         NULL if none has. A file that was removed or replaced meanwhile is as it was.
 */
const struct reading_file *reading_find_cut(const struct reading *reading, off_t *ret_size);
