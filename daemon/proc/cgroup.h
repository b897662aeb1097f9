/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Cgroup
 *
 * The processes of a control group and of the groups below it: those of a service, or of a
 * container. Only processes that live are in a group.
 *
 * Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst of the kernel.
 */

#include <stdbool.h>

#include "base/base.h"

#define CGROUP_DEPTH_MAX 32u    /* groups within each other */
#define CGROUP_COUNT_MAX 65536u /* groups that are looked at */

struct map;

/*
 * Open the root of the hierarchy: that of version 2, or else the one in which systemd keeps its
 * groups. Return: a descriptor, which is the caller's; or negative errno.
 */
_must_check_ int cgroup_open_root(void);

/* Return: whether @name can be the name or the path of a group: see cgroup_pids(). */
bool cgroup_name_is_good(const char *name);

/*
 * Find the processes of a group and of the groups below it. Groups that end meanwhile are passed
 * over.
 *
 * @root_fd: the root of the hierarchy; borrowed
 * @name: the path of the group below the root, which begins with a slash; or its name alone, such
 *        as that of a unit of systemd: then the processes of all groups of that name are found
 * @ret_pids: a map of the caller's, whose keys are pids; some are added on failure, too
 *
 * Return: 0; -ENOENT if there is no such group; -EINVAL if the name is not good; -EFBIG if there
 *         are too many groups, or they lie too deep; or another negative errno.
 */
_must_check_ int cgroup_pids(int root_fd, const char *name, struct map *ret_pids);
