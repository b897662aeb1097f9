/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Turns
 *
 * The order in which items are seen to, each of which counts for a user: processes that are to be
 * asked about (daemon/tasks/owned.h). Each user has lines of items, and users take turns. So a user
 * with very many items keeps nobody waiting but himself. A user can be left alone for a while.
 *
 * Items have small numbers, which the caller chooses: memory is needed up to the largest of them.
 * The number of users is limited. Those for whom there is no place count as one, TURNS_OTHERS, as
 * do items of which the user is not known.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "util/vec.h"

#define TURNS_USERS_MAX 64u /* that are told apart, with TURNS_OTHERS */
#define TURNS_OTHERS    ((uid_t)-1)
#define TURNS_NONE      UINT32_MAX /* no item */

enum turns_line {
	TURNS_STRANGERS, /* whose they are is a guess */
	TURNS_NEW,       /* they were never asked about */
	TURNS_AGAIN,     /* they were; the one comes first for which that was longest ago */
	TURNS_SETTLED,   /* nothing is to be asked */
	_TURNS_LINES,
};

struct turns_item {
	uint32_t before, after; /* in its line, or TURNS_NONE */
	uint8_t user;           /* index of its user */
	uint8_t line;           /* _TURNS_LINES: it is in no line */
};

struct turns_user {
	uid_t uid;
	size_t n; /* items in all lines */
	struct {
		uint32_t first, last;
	} lines[_TURNS_LINES];
	uint64_t left_until; /* he is left alone */
	unsigned turn;       /* counts his turns */
};

struct turns {
	VEC(struct turns_item) items;
	struct turns_user users[TURNS_USERS_MAX]; /* the first is TURNS_OTHERS */
	size_t n_users;
	size_t next; /* index of the user whose turn it is */
};

void turns_init(struct turns *turns);
void turns_deinit(struct turns *turns);

/* Put an item that is in no line at the end of a line of the user. Return: 0, or -ENOMEM. */
_must_check_ int turns_add(struct turns *turns, uint32_t item, uid_t uid, enum turns_line line);

/* Put an item that is in a line at the end of this one. */
void turns_move(struct turns *turns, uint32_t item, uid_t uid, enum turns_line line);

/* Take an item out of its line. */
void turns_remove(struct turns *turns, uint32_t item);

/* Return: the user for whom the item counts. */
uid_t turns_user(const struct turns *turns, uint32_t item);

/* Return: the first or the last item of a line; TURNS_NONE if there is none. Of a user who has no
 * place of his own: of TURNS_OTHERS. */
uint32_t turns_first(const struct turns *turns, uid_t uid, enum turns_line line);
uint32_t turns_last(const struct turns *turns, uid_t uid, enum turns_line line);

/* Return: how many items the user has, or who has the most of them. */
size_t turns_count(const struct turns *turns, uid_t uid);
uid_t turns_greediest(const struct turns *turns);

/* Let it be the next user's turn who is not left alone at @now. Return: who he is, and how many
 * turns he had before; NULL if there is none. */
const struct turns_user *turns_next(struct turns *turns, uint64_t now);

/* Leave the user alone until then. TURNS_OTHERS may be anybody, and are not. */
void turns_leave(struct turns *turns, uid_t uid, uint64_t until);
