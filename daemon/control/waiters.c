/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/waiters.h"

#include <string.h>

#include "ptd/control.h"

/* Of all clients together. */
#define WAITERS_MAX 256u

void waiters_deinit(struct waiters *waiters)
{
	for (size_t i = 0; i < waiters->calls.n; i++)
		(void)sd_bus_message_unref(waiters->calls.items[i]);
	vec_deinit(&waiters->calls);
}

int waiters_put_off(struct waiters *waiters, sd_bus_message *call, sd_bus_error *error)
{
	int r;

	if (waiters->calls.n >= WAITERS_MAX)
		return sd_bus_error_set(error, PTD_ERROR_BUSY, "too many calls are waiting");
	r = vec_push(&waiters->calls, call);
	if (r < 0)
		return r;
	(void)sd_bus_message_ref(call);
	return 1;
}

void waiters_answer(struct waiters *waiters, const char *id,
		    int (*reply)(sd_bus_message *call, const void *userdata), const void *userdata)
{
	size_t n = 0;

	for (size_t i = 0; i < waiters->calls.n; i++) {
		sd_bus_message *call = waiters->calls.items[i];
		const char *asked;

		if (sd_bus_message_rewind(call, true) >= 0 &&
		    sd_bus_message_read(call, "s", &asked) >= 0 && strcmp(asked, id) != 0) {
			waiters->calls.items[n++] = call;
			continue;
		}
		/* A client that has disconnected does not get the reply. */
		(void)reply(call, userdata);
		(void)sd_bus_message_unref(call);
	}
	waiters->calls.n = n;
}

bool waiters_has(const struct waiters *waiters, const sd_bus *bus)
{
	for (size_t i = 0; i < waiters->calls.n; i++)
		if (sd_bus_message_get_bus(waiters->calls.items[i]) == bus)
			return true;
	return false;
}

void waiters_forget(struct waiters *waiters, const sd_bus *bus)
{
	size_t n = 0;

	for (size_t i = 0; i < waiters->calls.n; i++) {
		sd_bus_message *call = waiters->calls.items[i];

		if (sd_bus_message_get_bus(call) == bus)
			(void)sd_bus_message_unref(call);
		else
			waiters->calls.items[n++] = call;
	}
	waiters->calls.n = n;
}
