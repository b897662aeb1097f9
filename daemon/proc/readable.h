/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Readable
 *
 * Whether a user may read a file, without being that user: the permission bits of the file and of
 * each directory on the way to it. The answer is no wherever more would have to be known: which
 * groups the user is in, or what an access control list says.
 *
 * Source: path_resolution(7).
 */

#include <sys/stat.h>
#include <sys/types.h>

#include "base/base.h"

#define READABLE_LINKS_MAX 16u /* symbolic links that are followed, as the kernel has a limit */

/*
 * Look at the regular file at @path, which is absolute. Symbolic links are followed.
 *
 * Return: 0 and @ret_st if the user may read it; -EACCES if not, or if that is not certain; -EINVAL
 *         if @path is not absolute; -ELOOP; -ENOEXEC if it is no regular file; or another negative
 *         errno.
 */
_must_check_ int readable_check(uid_t uid, const char *path, struct stat *ret_st);
