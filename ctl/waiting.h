/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Waiting
 *
 * While ptctl works, a line on the terminal says what it does and for how many seconds by now. It
 * appears after the first second. Without a terminal there is none.
 */

#include <pthread.h>
#include <stdbool.h>

#include "base/base.h"

struct waiting {
	const char *what; /* borrowed */
	bool is_shown;    /* a thread writes the line; the other members are for it */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool is_over;
};

/* Begin to show @what. The caller then works, and writes nothing to the terminal until the end. */
void waiting_begin(struct waiting *waiting, const char *what);

/* Remove the line. */
void waiting_end(struct waiting *waiting);
