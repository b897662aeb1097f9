/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Objects map
 *
 * A line of a snapshot's objects.map: who an object is, a tab, and the path by which it was mapped.
 * A path may hold any byte but NUL. A newline and a backslash are written as in /proc/mounts: a
 * backslash and three octal digits.
 */

#include <stdio.h>

#include "base/base.h"

/* Write a line. @id: without tabs. Errors stay in @f. */
void objectsmap_put(FILE *f, const char *id, const char *path);

/*
 * Take a line apart, which is changed; @line is without its newline. A backslash that no three
 * octal digits follow, as older snapshots have it, is one.
 *
 * Return: 0, and @ret_id and @ret_path are in @line; -EBADMSG if it is none.
 */
_must_check_ int objectsmap_split(char *line, const char **ret_id, const char **ret_path);
