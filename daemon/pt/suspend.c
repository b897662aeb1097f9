/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/suspend.h"

#include "base/clock.h"

/* Less is no suspend, and between reading the one clock and the other. */
#define SUSPENDED_NS INT64_C(50000000)
#define LOOK_NS_MAX  (SUSPENDED_NS / 4)

static struct suspend_look look(void)
{
	struct suspend_look l;

	l.before = (int64_t)clock_ns(CLOCK_MONOTONIC);
	l.boot = (int64_t)clock_ns(CLOCK_BOOTTIME);
	l.after = (int64_t)clock_ns(CLOCK_MONOTONIC);
	return l;
}

bool suspend_seen(struct suspend *suspend, const struct suspend_look *look)
{
	const int64_t ns = look->boot - look->before;
	bool happened;

	if (look->after - look->before > LOOK_NS_MAX)
		return false;
	happened = ns > suspend->ns + SUSPENDED_NS;
	suspend->ns = ns;
	return happened;
}

void suspend_init(struct suspend *suspend)
{
	struct suspend_look l;

	do
		l = look();
	while (l.after - l.before > LOOK_NS_MAX);
	suspend->ns = l.boot - l.before;
}

bool suspend_happened(struct suspend *suspend)
{
	const struct suspend_look l = look();

	return suspend_seen(suspend, &l);
}
