/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Objects map
 *
 * The lines of a snapshot's objects.map: the identity of an object, a tab, and the path by which it
 * was mapped. A path may hold any byte but NUL. A newline and a backslash are written as in
 * /proc/mounts: a backslash and three octal digits.
 */

#include <stdio.h>

#include "base/base.h"

/* Write a line. @id has no tabs. Whether writing failed is to be asked of @f afterwards. */
void objectsmap_put(FILE *f, const char *id, const char *path);

/*
 * Split @line, which is changed and has no newline, into its two parts. Older snapshots have plain
 * backslashes: one that is not followed by three octal digits stands for itself.
 *
 * Return: 0, and @ret_id and @ret_path point into @line; -EBADMSG if it is no such line.
 */
_must_check_ int objectsmap_split(char *line, const char **ret_id, const char **ret_path);
