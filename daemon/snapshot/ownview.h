/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Own view
 *
 * What a user may see who is not in the group: in his own snapshot (struct scope, is_own) is only
 * what his own programs ran and wrote, and files that he can read himself. All that decides this
 * lies here.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/proc/cpulist.h"

struct collectorlink;
struct object;
struct ownpart;
struct owned_life;
struct record;
struct source;

/* All zeros: everything is shown. */
struct ownview {
	bool is_own;
	bool is_shared; /* programs of all users share the CPUs: what is his has to be picked out */
	uid_t uid;
	struct ownpart *part;       /* if so, by ownview_pick() */
	const atomic_bool *cancel;  /* borrowed; may be NULL */
	struct collectorlink *link; /* by ownview_connect() */
};

void ownview_deinit(struct ownview *view);

/* Pick out what is the user's of CPUs that all users share: @lives, see owned_list(). Return: 0, or
 * -ENOMEM. */
_must_check_ int ownview_pick(struct ownview *view, const struct owned_life *lives, size_t n);

/* Get the CPUs that are the user's; if users share them, all of them. The rings are held: at any
 * other time a CPU may be another user's. */
void ownview_get_cpus(const struct ownview *view, struct source *source, struct cpulist *ret_cpus);

/* Return: whether the record may be shown: his own programs wrote it; or it says that records were
 *         lost, which concerns everybody. */
bool ownview_has_record(const struct ownview *view, const struct record *record);

/* Before ownview_has_object(). Return: 0, or negative errno. */
_must_check_ int ownview_connect(struct ownview *view, const char *runtime_dir);

/* Return: whether the user can read now, at the object's path, what was copied. The copy may be of
 *         a file that other users mapped, and that the user only named. */
bool ownview_has_object(const struct ownview *view, const struct object *object);
