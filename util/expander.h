/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Expander
 *
 * Makes something of runs in the thread that has just decoded them, ahead of their turn in the
 * stream. The runs are in the cache of its CPU then, and what is made, if it is less, replaces
 * them, so that they need not leave it. It can depend on the runs alone: who ran them, and what
 * came before, is certain only later.
 */

#include <stddef.h>

#include "ptd/record.h"

struct expander {
	/*
	 * Replace the runs by what they become, which has no more bytes than they have. @thread is
	 * the number of the calling thread (util/threads.h).
	 *
	 * Return: how many bytes are at @runs now; 0: the runs are.
	 */
	size_t (*expand)(void *userdata, size_t thread, struct ptd_run *runs, size_t n_runs);
	void *userdata;
};
