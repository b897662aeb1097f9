/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Share
 *
 * How much of something that has a limit each user has taken: bytes of copies, descriptors,
 * requests. Whatever one user can fill has such an account, and each of them follows the same rule:
 *
 *   - A user's part is a quarter of the limit; with more than four users the limit is divided by
 *     their number.
 *   - A user may take up to their part as long as the limit is not reached.
 *   - A user may take more than their part, but an eighth of the limit is left for others: so there
 *     is room at once when another user needs some.
 *   - If others have taken of that eighth, or need more than it to have their parts, the user with
 *     the most gives, as long as they have more than their part. The keeper of the account
 *     takes it from them; some things cannot be given.
 *
 * Root may take all and gives nothing: its programs are everybody's, and root can stop ptd anyway.
 * Where that would cost others what is theirs, root has a part as they have (root_has_part).
 *
 * The account is for a fixed number of users. If there are more, the others count as one. A share
 * that is all zeros is empty; it owns nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

#define SHARE_PART      4u  /* the limit divided by this is what each user is sure of */
#define SHARE_RESERVE   8u  /* the limit divided by this is left for who is below their part */
#define SHARE_USERS_MAX 64u /* that are told apart */
#define SHARE_OTHERS    ((uid_t)-1) /* who stands for all others */

/* Why something was refused. */
enum share_reason {
	SHARE_REASON_SHARE,      /* the user would have had more than their share */
	SHARE_REASON_TAKEN_BACK, /* the user had it, and others needed the room */
	SHARE_REASON_DISK,       /* no room was left on the disk, whoever took it */
	SHARE_REASON_TIME,       /* it took too long to read what is theirs */
	SHARE_REASON_UNREADABLE, /* what is theirs could not be read for another reason */
	_SHARE_REASON_MAX,
};

struct share_user {
	uid_t uid;
	uint64_t taken;
	uint64_t refused[_SHARE_REASON_MAX]; /* how often something was, for each reason */
};

struct share {
	struct share_user users[SHARE_USERS_MAX];
	size_t n_users;
	uint64_t taken;  /* by all of them */
	uint64_t needed; /* the most that was refused at a time though it is in the user's part */
	uid_t needed_by; /* whose account that is */
	bool root_has_part; /* share_part() and share_exceeds() take root for a user like others */
};

/* Return: whether the user may take @amount if all may take @max together. */
bool share_allows(const struct share *share, uint64_t max, uid_t uid, uint64_t amount);

/* Return: how much the user has taken. */
uint64_t share_taken(const struct share *share, uid_t uid);

/* Return: how much of @max is the user's part. */
uint64_t share_part(const struct share *share, uint64_t max, uid_t uid);

/* Return: whether the user has no more than their part of @max after taking @amount more. */
bool share_is_in_part(const struct share *share, uint64_t max, uid_t uid, uint64_t amount);

/* Count what the user has taken, whether it was allowed or not. */
void share_take(struct share *share, uid_t uid, uint64_t amount);

/* Count what the user has given back. */
void share_give(struct share *share, uid_t uid, uint64_t amount);

/* Forget what was taken and is needed, which is about to be counted again; but not what was
 * refused. */
void share_restart(struct share *share);

/* Count that @amount was refused to the user. */
void share_refuse(struct share *share, uint64_t max, uid_t uid, uint64_t amount);

/* Count that something was taken back from the user, who has more than their part. */
void share_count_taken_back(struct share *share, uid_t uid);

/* Count that something was refused to the user @n times. */
void share_count_refused(struct share *share, uid_t uid, enum share_reason reason, uint64_t n);

/* Return: how often something was refused to the user, for whatever reason. */
uint64_t share_n_refused(const struct share_user *user);

/* Return: whether the user has more than their part of @max. */
bool share_exceeds(const struct share *share, uint64_t max, uid_t uid);

/* Return: whether somebody is to give of what they have, since little of @max is left, and who that
 *         is. */
bool share_giver(const struct share *share, uint64_t max, uid_t *ret_uid);
