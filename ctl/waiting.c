/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/waiting.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *show_seconds(void *userdata)
{
	struct waiting *w = userdata;
	struct timespec next;
	unsigned int seconds = 0;

	(void)clock_gettime(CLOCK_REALTIME, &next);
	(void)pthread_mutex_lock(&w->lock);
	while (!w->is_over) {
		next.tv_sec++;
		while (!w->is_over &&
		       pthread_cond_timedwait(&w->ended, &w->lock, &next) != ETIMEDOUT)
			;
		if (!w->is_over)
			fprintf(stderr, "\rptctl: %s, %u s ", w->what, ++seconds);
	}
	(void)pthread_mutex_unlock(&w->lock);
	if (seconds > 0)
		fputs("\r\033[K", stderr);
	return NULL;
}

void waiting_begin(struct waiting *waiting, const char *what)
{
	*waiting = (struct waiting){ .what = what };
	if (!isatty(STDERR_FILENO))
		return;
	(void)pthread_mutex_init(&waiting->lock, NULL);
	(void)pthread_cond_init(&waiting->ended, NULL);
	/* The work does not need the line. */
	waiting->is_shown = pthread_create(&waiting->thread, NULL, show_seconds, waiting) == 0;
}

void waiting_end(struct waiting *waiting)
{
	if (!waiting->is_shown)
		return;
	(void)pthread_mutex_lock(&waiting->lock);
	waiting->is_over = true;
	(void)pthread_cond_signal(&waiting->ended);
	(void)pthread_mutex_unlock(&waiting->lock);
	(void)pthread_join(waiting->thread, NULL);
	waiting->is_shown = false;
}
