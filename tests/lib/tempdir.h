/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Temporary directory
 *
 * A directory under /tmp for one test, and files in it. If one of these cannot be made, the test
 * program exits with a message.
 */

#include <stddef.h>

#define TEMPDIR_SIZE 64 /* of its path with the NUL */

/* Make a directory; @name becomes part of its path. */
void tempdir_make(const char *name, char ret_dir[static TEMPDIR_SIZE]);

/* Write the file @path under @dir anew, and make the directories above it. */
void tempdir_put(const char *dir, const char *path, const void *bytes, size_t size);
void tempdir_put_text(const char *dir, const char *path, const char *text);

/* Remove @dir with its contents, if it exists. */
void tempdir_remove(const char *dir);
