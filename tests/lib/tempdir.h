/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tempdir
 *
 * A directory of a test's own under /tmp, and the files it needs there. Without them there is no
 * test: whoever cannot have them ends with a message.
 */

#include <stddef.h>

#define TEMPDIR_SIZE 64 /* of its path with the NUL */

/* Make it; @name becomes part of its path. */
void tempdir_make(const char *name, char ret_dir[static TEMPDIR_SIZE]);

/* Write the file @path under @dir anew; the directories above it are made if need be. */
void tempdir_put(const char *dir, const char *path, const void *bytes, size_t size);
void tempdir_put_text(const char *dir, const char *path, const char *text);

/* Remove @dir, if it is there, with all that is in it. */
void tempdir_remove(const char *dir);
