/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/machinesleep.h"

#include "base/clock.h"

/* Less is no suspend, and between reading the one clock and the other. */
#define SUSPENDED_NS INT64_C(50000000)
#define LOOK_NS_MAX  (SUSPENDED_NS / 4)

static struct machinesleep_look look(void)
{
	struct machinesleep_look l;

	l.before = (int64_t)clock_ns(CLOCK_MONOTONIC);
	l.boot = (int64_t)clock_ns(CLOCK_BOOTTIME);
	l.after = (int64_t)clock_ns(CLOCK_MONOTONIC);
	return l;
}

bool machinesleep_seen(struct machinesleep *sleep, const struct machinesleep_look *look)
{
	const int64_t ns = look->boot - look->before;
	bool happened;

	if (look->after - look->before > LOOK_NS_MAX)
		return false;
	happened = ns > sleep->ns + SUSPENDED_NS;
	sleep->ns = ns;
	return happened;
}

void machinesleep_init(struct machinesleep *sleep)
{
	struct machinesleep_look l;

	do
		l = look();
	while (l.after - l.before > LOOK_NS_MAX);
	sleep->ns = l.boot - l.before;
}

bool machinesleep_happened(struct machinesleep *sleep)
{
	const struct machinesleep_look l = look();

	return machinesleep_seen(sleep, &l);
}
