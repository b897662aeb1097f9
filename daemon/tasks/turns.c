/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tasks/turns.h"

#include <assert.h>

#define OTHERS 0 /* index */

static_assert(TURNS_USERS_MAX <= UINT8_MAX, "an item has the index of its user");

static void init_user(struct turns_user *user, uid_t uid)
{
	*user = (struct turns_user){ .uid = uid };
	for (size_t i = 0; i < _TURNS_LINES; i++)
		user->lines[i].first = user->lines[i].last = TURNS_NONE;
}

void turns_init(struct turns *turns)
{
	*turns = (struct turns){ .n_users = 1 };
	init_user(&turns->users[OTHERS], TURNS_OTHERS);
}

void turns_deinit(struct turns *turns)
{
	vec_deinit(&turns->items);
}

/* Return: the index of the user, or of the others. */
static size_t find_user(const struct turns *t, uid_t uid)
{
	for (size_t i = 1; i < t->n_users; i++)
		if (t->users[i].uid == uid)
			return i;
	return OTHERS;
}

/* Make a place for the user, if need be that of one who has nothing. */
static size_t make_user(struct turns *t, uid_t uid)
{
	size_t i = find_user(t, uid), idle = OTHERS;

	if (i != OTHERS || uid == TURNS_OTHERS)
		return i;
	if (t->n_users < TURNS_USERS_MAX) {
		idle = t->n_users++;
	} else {
		for (i = 1; i < t->n_users; i++)
			if (t->users[i].n == 0 &&
			    (idle == OTHERS || t->users[i].left_until < t->users[idle].left_until))
				idle = i;
	}
	if (idle != OTHERS)
		init_user(&t->users[idle], uid);
	return idle;
}

static void push(struct turns *t, uint32_t number, uid_t uid, enum turns_line line)
{
	struct turns_item *item = &t->items.items[number];
	const size_t i = make_user(t, uid);
	struct turns_user *user = &t->users[i];
	const uint32_t last = user->lines[line].last;

	*item = (struct turns_item){
		.before = last, .after = TURNS_NONE, .user = (uint8_t)i, .line = (uint8_t)line
	};
	if (last == TURNS_NONE)
		user->lines[line].first = number;
	else
		t->items.items[last].after = number;
	user->lines[line].last = number;
	user->n++;
}

int turns_add(struct turns *turns, uint32_t item, uid_t uid, enum turns_line line)
{
	while (turns->items.n <= item) {
		const int r = vec_push(&turns->items, { .line = _TURNS_LINES });

		if (r < 0)
			return r;
	}
	assert(turns->items.items[item].line == _TURNS_LINES);
	push(turns, item, uid, line);
	return 0;
}

void turns_remove(struct turns *turns, uint32_t item)
{
	struct turns_item *items = turns->items.items, *it = &items[item];
	struct turns_user *user = &turns->users[it->user];

	assert(it->line < _TURNS_LINES);
	if (it->before == TURNS_NONE)
		user->lines[it->line].first = it->after;
	else
		items[it->before].after = it->after;
	if (it->after == TURNS_NONE)
		user->lines[it->line].last = it->before;
	else
		items[it->after].before = it->before;
	user->n--;
	it->line = _TURNS_LINES;
}

void turns_move(struct turns *turns, uint32_t item, uid_t uid, enum turns_line line)
{
	turns_remove(turns, item);
	push(turns, item, uid, line);
}

uid_t turns_user(const struct turns *turns, uint32_t item)
{
	return turns->users[turns->items.items[item].user].uid;
}

uint32_t turns_first(const struct turns *turns, uid_t uid, enum turns_line line)
{
	return turns->users[find_user(turns, uid)].lines[line].first;
}

uint32_t turns_last(const struct turns *turns, uid_t uid, enum turns_line line)
{
	return turns->users[find_user(turns, uid)].lines[line].last;
}

size_t turns_count(const struct turns *turns, uid_t uid)
{
	return turns->users[find_user(turns, uid)].n;
}

uid_t turns_greediest(const struct turns *turns)
{
	size_t most = OTHERS;

	for (size_t i = 1; i < turns->n_users; i++)
		if (turns->users[i].n > turns->users[most].n)
			most = i;
	return turns->users[most].uid;
}

const struct turns_user *turns_next(struct turns *turns, uint64_t now)
{
	for (size_t i = 0; i < turns->n_users; i++) {
		struct turns_user *user = &turns->users[turns->next % turns->n_users];

		turns->next = (turns->next + 1) % turns->n_users;
		if (user->n > 0 && user->left_until <= now) {
			user->turn++;
			return user;
		}
	}
	return NULL;
}

void turns_leave(struct turns *turns, uid_t uid, uint64_t until)
{
	const size_t i = find_user(turns, uid);

	if (i != OTHERS)
		turns->users[i].left_until = until;
}
