/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sums
 *
 * The hashes of a snapshot's files, which ptd wrote into the snapshot's SHA256SUMS, and the check
 * that the files are still those. Several threads hash: of the data file, which is nearly always
 * the largest, the pieces (util/pieces.h), and each other file as a whole. All files have been
 * hashed before anything of them is decoded; but if a part of the PT is read, the pieces of the
 * data file are checked when they are read.
 */

#include "base/base.h"

struct mapfile;
struct reading;

/*
 * Compare the files of the directory open at @dir_fd, which messages call @dir, with @file, which
 * is its SHA256SUMS. @reading: its threads hash, and its progress counts the bytes; it may be NULL.
 * If a part of the PT is read, the data file is left out, if it has pieces: these are set.
 *
 * Return: 0; -EKEYREJECTED if a file is not the one that was written, or is missing, or if there
 *         are data files that @file does not name; -EBADMSG if
 *         @file is not what it should be; -ECANCELED; or another negative errno; each with
 *         @reterr_message, which the caller frees.
 */
_must_check_ int sums_check(int dir_fd, const char *dir, const struct mapfile *file,
			    struct reading *reading, char **reterr_message);
