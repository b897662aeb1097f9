/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/share/share.h"

#define ROOT 0

/* Return: the number of the user's account; @share->n_users if there is none. */
static size_t find_user(const struct share *share, uid_t uid)
{
	size_t i = 0;

	while (i < share->n_users && share->users[i].uid != uid)
		i++;
	return i;
}

/* Return: the number of the account in which the user counts; @share->n_users if there is none. */
static size_t account_of(const struct share *share, uid_t uid)
{
	const size_t i = find_user(share, uid);

	return i < share->n_users ? i : find_user(share, SHARE_OTHERS);
}

uint64_t share_taken(const struct share *share, uid_t uid)
{
	const size_t i = account_of(share, uid);

	return i < share->n_users ? share->users[i].taken : 0;
}

static struct share_user *add_account(struct share *share, uid_t uid)
{
	struct share_user *user = &share->users[share->n_users++];

	*user = (struct share_user){ .uid = uid };
	return user;
}

/* Return: the account with nothing taken that was refused least; NULL if there is none. */
static struct share_user *idle_account(struct share *share)
{
	struct share_user *idle = NULL;

	for (size_t i = 0; i < share->n_users; i++) {
		struct share_user *u = &share->users[i];

		if (u->uid != SHARE_OTHERS && u->taken == 0 &&
		    (!idle || share_n_refused(u) < share_n_refused(idle)))
			idle = u;
	}
	return idle;
}

/* Make an account for the user, if need be in the place of one that is empty. While others count as
 * one, a user who may be among them gets no account of their own, because what they give back is
 * counted for all of these. */
static struct share_user *open_account(struct share *share, uid_t uid)
{
	struct share_user *others, *idle;
	size_t i = find_user(share, uid);

	if (i < share->n_users)
		return &share->users[i];
	if (share->n_users < SHARE_USERS_MAX - 1)
		return add_account(share, uid);
	i = find_user(share, SHARE_OTHERS);
	others = i < share->n_users ? &share->users[i] : add_account(share, SHARE_OTHERS);
	idle = others->taken == 0 ? idle_account(share) : NULL;
	if (!idle)
		return others;
	for (enum share_reason reason = 0; reason < _SHARE_REASON_MAX; reason++)
		others->refused[reason] += idle->refused[reason];
	*idle = (struct share_user){ .uid = uid };
	return idle;
}

uint64_t share_part(const struct share *share, uint64_t max, uid_t uid)
{
	size_t n = 1;

	for (size_t i = 0; i < share->n_users; i++) {
		const struct share_user *u = &share->users[i];

		n += (u->taken > 0 || (share->needed > 0 && u->uid == share->needed_by)) &&
		     u->uid != uid && (share->root_has_part || u->uid != ROOT);
	}
	return max / (n > SHARE_PART ? n : SHARE_PART);
}

bool share_is_in_part(const struct share *share, uint64_t max, uid_t uid, uint64_t amount)
{
	const uint64_t own = share_taken(share, uid), part = share_part(share, max, uid);

	return amount <= part && own <= part - amount;
}

bool share_allows(const struct share *share, uint64_t max, uid_t uid, uint64_t amount)
{
	if (amount > max || share->taken > max - amount)
		return false;
	if (uid == ROOT || share_is_in_part(share, max, uid, amount))
		return true;
	return share->taken + amount <= max - max / SHARE_RESERVE;
}

void share_take(struct share *share, uid_t uid, uint64_t amount)
{
	open_account(share, uid)->taken += amount;
	share->taken += amount;
}

void share_give(struct share *share, uid_t uid, uint64_t amount)
{
	const size_t i = account_of(share, uid);

	if (i == share->n_users)
		return;
	amount = amount < share->users[i].taken ? amount : share->users[i].taken;
	share->users[i].taken -= amount;
	share->taken -= amount;
}

void share_restart(struct share *share)
{
	for (size_t i = 0; i < share->n_users; i++)
		share->users[i].taken = 0;
	share->taken = 0;
	share->needed = 0;
}

void share_refuse(struct share *share, uint64_t max, uid_t uid, uint64_t amount)
{
	struct share_user *user = open_account(share, uid);

	user->refused[SHARE_REASON_SHARE]++;
	if (!share_is_in_part(share, max, uid, amount) || amount <= share->needed)
		return;
	share->needed = amount;
	share->needed_by = user->uid;
}

void share_count_taken_back(struct share *share, uid_t uid)
{
	open_account(share, uid)->refused[SHARE_REASON_TAKEN_BACK]++;
}

void share_count_refused(struct share *share, uid_t uid, enum share_reason reason, uint64_t n)
{
	if (n > 0)
		open_account(share, uid)->refused[reason] += n;
}

uint64_t share_n_refused(const struct share_user *user)
{
	uint64_t n = 0;

	for (enum share_reason reason = 0; reason < _SHARE_REASON_MAX; reason++)
		n += user->refused[reason];
	return n;
}

bool share_exceeds(const struct share *share, uint64_t max, uid_t uid)
{
	return (share->root_has_part || uid != ROOT) &&
	       share_taken(share, uid) > share_part(share, max, uid);
}

bool share_giver(const struct share *share, uint64_t max, uid_t *ret_uid)
{
	const uint64_t reserve = max / SHARE_RESERVE;
	const uint64_t room = share->needed > reserve ? share->needed : reserve;
	const struct share_user *most = NULL;

	if (room <= max && share->taken <= max - room)
		return false;
	for (size_t i = 0; i < share->n_users; i++) {
		const struct share_user *u = &share->users[i];

		if (u->uid != ROOT && (!most || u->taken > most->taken))
			most = u;
	}
	if (!most || most->taken <= share_part(share, max, most->uid))
		return false;
	*ret_uid = most->uid;
	return true;
}
