/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Passages
 *
 * Which threads are on their way from one place of a program to another, and since when, to find
 * those that take longer than a limit. A passage begins when a thread enters a function. It ends
 * when the thread enters another function, or when the function returns.
 *
 * A thread has one passage at most. If it enters the first function again before the end, that
 * begins its passage anew, since what it began before was not completed. If the passage ends with
 * the return of the function, calls from within the function are part of it; the stack pointer says
 * which calls are. The passage of a thread that ends, or whose process executes another program, is
 * forgotten.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

/* Passages of more threads at a time are not looked at. */
#define PASSAGES_MAX 1024u

enum moment_kind {
	MOMENT_BEGIN, /* the thread enters the first function */
	MOMENT_END,   /* the thread enters the other one, or has returned */
	MOMENT_GONE,  /* the thread has ended */
	MOMENT_EXEC,  /* the process executes another program */
};

/* What a thread did. */
struct moment {
	enum moment_kind kind;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t sp; /* its stack pointer, if the passage ends with a return */
};

struct passages {
	uint64_t limit_ns;
	bool has_return;            /* passages end with the return of their function */
	VEC(struct moment) open;    /* the beginnings, oldest first */
	VEC(struct moment) moments; /* that were added, and not looked at */
};

void passages_deinit(struct passages *passages);

/* Forget everything: moments may be missing. */
void passages_forget(struct passages *passages);

/* Add a moment. Moments may be added in any order. Return: 0 or -ENOMEM. */
_must_check_ int passages_add(struct passages *passages, const struct moment *moment);

/*
 * Look at the moments before @now_ns, which must all have been added.
 *
 * Return: whether a passage took longer than the limit, and @ret_hit: the first such thread, and
 *         when the limit was over. Then all passages are forgotten.
 */
bool passages_find(struct passages *passages, uint64_t now_ns, struct moment *ret_hit);
