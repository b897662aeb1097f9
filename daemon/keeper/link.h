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

/* Return: the descriptor that an earlier ptd had kept under @name with the same @form, which is the
 *         caller's; or -1 if there is none. */
int keeperlink_take(struct keeperlink *link, const char *name, const char *form);

/* Have the descriptor kept, which stays the caller's and has to stay open as long as the link
 * lives, in the place of what is kept under @name. @link may be NULL. Return: 0, or -ENOMEM. */
_must_check_ int keeperlink_keep(struct keeperlink *link, const char *name, const char *form,
				 int fd);

/* The source has what it wants: have the keeper close what keeperlink_keep() did not name. */
void keeperlink_settle(struct keeperlink *link);

/* Change for how long everything is kept. */
void keeperlink_set_seconds(struct keeperlink *link, unsigned seconds);

/* To be called once a second: find another keeper if the last one has ended. */
void keeperlink_look_after(struct keeperlink *link);
