/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Owned
 *
 * What each user may see of what hardware recorded: from when to when which processes were his, as
 * answers to the question whose they are say (daemon/proc/traceable.h). Where that is not known,
 * they are nobody's.
 *
 * A life of a process begins with a record: of a fork, of a program that it executes, or of a
 * process that is found. It is asked for soon after that, and then again and again. The life is a
 * user's from the first answer that says so up to the last one, if all of them between say so. An
 * answer counts once all records from before it are known, since the process may have executed
 * another program meanwhile. The answer also holds for the time before it, up to the beginning of
 * the life, if the process cannot have lost rights since: because it had none when it executed the
 * program, or is the child of one that had none.
 *
 * Each life counts for a user, at first for him for whom its parent does, then for the real user of
 * the process. Users take turns in being asked about (daemon/tasks/turns.h). If there are too many
 * lives, one goes of the user who has the most: its process is nobody's until it executes another
 * program.
 *
 * All times are in ns on the records' clock. The event loop calls all functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

#define OWNED_AGAIN_NS  UINT64_C(1000000000) /* between two questions about one life */
#define OWNED_LIVES_MAX 32768u               /* that go on */
#define OWNED_ASK_MAX   64u                  /* processes of one question */
#define OWNED_STRANGER  ((uid_t)-1)

struct owned;

/* A life of a process, and what of it is the user's. */
struct owned_life {
	uint32_t pid;
	uid_t uid;
	gid_t gid;
	uint64_t begun;       /* records of it that are older are those of another life */
	uint64_t from, until; /* the user's; nothing is if @from is not before @until */
};

/* What was found out about a process. */
struct owned_answer {
	uint32_t pid;
	/* 0: the rest is known; -EAGAIN: the process executes a program just now, and nothing is
	 * known; another one: it is nobody's. */
	int error;
	uid_t uid;
	gid_t gid;
	uint64_t birth;       /* when it was started, in any unit */
	uint64_t asked_ns;    /* it was found out between this time, */
	uint64_t answered_ns; /* and this one */
};

/* Processes that are to be asked about. */
struct owned_question {
	uint32_t pids[OWNED_ASK_MAX];
	size_t n;
	uid_t user; /* whose they are; OWNED_STRANGER: owned_note_user() is to say that first */
};

/* Processes that run. Those of root, and those that were refused, are neither. */
struct owned_count {
	size_t known;   /* to be a user's */
	size_t unknown; /* they are still to be asked about */
};

/* Return: 0, or -ENOMEM. */
_must_check_ int owned_new(struct owned **ret_owned);
struct owned *owned_free(struct owned *owned);

DEFINE_CLEANUP(struct owned *, owned_free);

/* Take note of task records, whole ones, in the order of time. After one that says that some were
 * lost, nothing is known any more. */
void owned_add(struct owned *owned, const uint8_t *bytes, size_t size);

/* All records from before @time were added. */
void owned_settle(struct owned *owned, uint64_t time);

/*
 * Find processes of one user, whose turn it is, that are to be asked about: those of which nothing
 * is known yet, and others for which it is time.
 *
 * @look: they may be OWNED_STRANGER's
 *
 * Return: whether there are any.
 */
bool owned_ask(struct owned *owned, uint64_t now, bool look, struct owned_question *ret_question);

/* The same for this user, who wants to know what is his: of all that may be his and were not asked
 * about since @since. Strangers may be others'. */
bool owned_ask_of(struct owned *owned, uint64_t now, uid_t uid, uint64_t since,
		  struct owned_question *ret_question);

/* Note the real user of a process. It is asked about soon, unless it is root's. */
void owned_note_user(struct owned *owned, uint32_t pid, uid_t user, uint64_t now);

/* Do not ask about the user's processes until then, unless he wants to know it himself. */
void owned_leave(struct owned *owned, uid_t uid, uint64_t until);

/* Note an answer. Nothing need be answered. */
void owned_answer(struct owned *owned, const struct owned_answer *answer);

/*
 * List the lives of which the user, with this group, has something; and those that ended, or were
 * refused, before anything of them was his, though their parents were his: of these @from and
 * @until are 0. What was started by a process that was refused is not among them.
 *
 * Return: 0 and an array of the caller's; or -ENOMEM.
 */
_must_check_ int owned_list(const struct owned *owned, uid_t uid, gid_t gid,
			    struct owned_life **ret_lives, size_t *ret_n);

struct owned_count owned_count(const struct owned *owned);
