/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/sideband/scanner.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/sideband/sideband.h"
#include "daemon/source/source.h"

/* How long the event loop is kept at a time, and left to others in between. */
#define STEP_US UINT64_C(4000)
#define REST_US UINT64_C(8000)

/* Between two scans; or longer, so that scans take no more than this part of one CPU. */
#define PAUSE_US UINT64_C(1000000)
#define PART     20u

struct scanner {
	struct scanner_options options;
	sd_event_source *timer;
	bool armed;
	uint64_t busy_us;   /* spent on the present scan */
	uint64_t not_until; /* CLOCK_MONOTONIC, in us, like now_us() */
	bool said;          /* that it fails */
};

/* Not the event loop's time, which is that of its last wakeup. */
static uint64_t now_us(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000;
}

static void arm_timer(struct scanner *s, uint64_t at)
{
	s->armed = sd_event_source_set_time(s->timer, at) >= 0 &&
		   sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT) >= 0;
}

static int put_found(void *userdata, const void *bytes, size_t size)
{
	const struct scanner_options *o = &((struct scanner *)userdata)->options;
	_cleanup_(freep) uint8_t *copy = malloc(size + 1);
	int r, other;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, size);
	other = o->put(o->userdata, copy, size);
	r = sideband_add_found(o->sideband, copy, size);
	return r < 0 ? r : other;
}

static void end_scan(struct scanner *s, int r)
{
	const uint64_t pause = PART * s->busy_us;

	s->not_until = now_us() + (pause > PAUSE_US ? pause : PAUSE_US);
	s->busy_us = 0;
	if (r == 0) {
		sideband_end_look(s->options.sideband);
	} else if (!s->said) {
		(void)log_error_errno(
		    r, "cannot look at the tasks that run, their code cannot be decoded "
		       "before that works: %m");
		s->said = true;
	}
	scanner_check(s);
}

static int on_timer(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct scanner *s = userdata;
	struct source *source = s->options.source;
	const uint64_t begun = now_us();
	int r;

	s->armed = false;
	r = source->ops->tasks(source, sideband_known(s->options.sideband), STEP_US * 1000,
			       put_found, s);
	s->busy_us += now_us() - begun;
	if (r > 0)
		arm_timer(s, now_us() + REST_US);
	else
		end_scan(s, r);
	return 0;
}

int scanner_new(const struct scanner_options *options, struct scanner **ret_scanner)
{
	_cleanup_(scanner_freep) struct scanner *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct scanner){ .options = *options };
	r = sd_event_add_time(options->event, &s->timer, CLOCK_MONOTONIC, 0, 1, on_timer, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret_scanner = TAKE(s);
	return 0;
}

struct scanner *scanner_free(struct scanner *scanner)
{
	if (!scanner)
		return NULL;
	sd_event_source_disable_unref(scanner->timer);
	free(scanner);
	return NULL;
}

void scanner_check(struct scanner *scanner)
{
	if (!scanner->armed && sideband_wants_look(scanner->options.sideband))
		arm_timer(scanner, scanner->not_until);
}
