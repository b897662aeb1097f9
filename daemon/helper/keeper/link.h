/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keeper link
 *
 * ptd's side of the keeper: takes back what an earlier ptd gave to the keeper, and gives it what a
 * later ptd is to have. If no keeper serves, the link starts one, unless a service manager runs
 * ptd, whose business that is. If the keeper ends, everything is given to the next one. What fails
 * is logged once, and ptd goes on without a keeper.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct keeperlink;

/*
 * Connect to the keeper that serves at DIR/keeper/socket, if there is one, and ask for what it
 * keeps.
 *
 * @seconds: for which the keeper keeps everything after ptd has ended; 0: nothing is kept
 *
 * Return: 0, also if there is no keeper; or -ENOMEM or -ENAMETOOLONG.
 */
_must_check_ int keeperlink_new(const char *runtime_dir, unsigned seconds,
				struct keeperlink **ret_link);

/* The keeper keeps what it has. Return: NULL. */
struct keeperlink *keeperlink_free(struct keeperlink *link);

DEFINE_CLEANUP(struct keeperlink *, keeperlink_free);

/* Something that can be kept. */
struct keepable {
	int fd;
	uint64_t data_size, aux_size; /* bytes of the rings of a perf event, or 0 */
};

/* Return: whether an earlier ptd had something kept under @name with the same @form; its descriptor
 *         is the caller's. @link may be NULL. */
bool keeperlink_take(struct keeperlink *link, const char *name, const char *form,
		     struct keepable *ret_kept);

/* Have the keeper close everything that was not taken. @link may be NULL. */
void keeperlink_drop_rest(struct keeperlink *link);

/* Have @what kept under @name, in place of what was kept there. The descriptor stays the caller's,
 * who closes it only after keeperlink_drop(), or after the link is freed. @link may be NULL.
 * Return: 0, or -ENOMEM. */
_must_check_ int keeperlink_keep(struct keeperlink *link, const char *name, const char *form,
				 const struct keepable *what);

/* Have the keeper close what it keeps under @name. It has done so when this returns. @link may be
 * NULL. */
void keeperlink_drop(struct keeperlink *link, const char *name);

/* The source is ready: give everything to the keeper, now and whenever something is added later. */
void keeperlink_settle(struct keeperlink *link);

/* Change for how long everything is kept. */
void keeperlink_set_seconds(struct keeperlink *link, unsigned seconds);

/* To be called once a second: find another keeper if the last one has ended. */
void keeperlink_look_after(struct keeperlink *link);
