/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/triggercalls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control/call.h"
#include "daemon/control/interface.h"
#include "daemon/trigger/triggers.h"
#include "ptd/control.h"

/* Read a text that must not be cut: an argument of type "s", or an option's value, "v". */
static int read_whole(sd_bus_message *m, const char *type, char *ret_text, size_t size,
		      sd_bus_error *error)
{
	const char *text;
	int r;

	r = type[0] == 'v' ? sd_bus_message_read(m, "v", "s", &text)
			   : sd_bus_message_read(m, "s", &text);
	if (r < 0)
		return r;
	if (strlen(text) >= size)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
					 "a text is longer than %zu bytes", size - 1);
	strcpy(ret_text, text);
	return 0;
}

/* @userdata is the struct trigger_wish of AddTrigger. */
static int read_option(sd_bus_message *m, const char *option, void *userdata, sd_bus_error *error)
{
	struct trigger_wish *wish = userdata;

	if (strcmp(option, "comm") == 0)
		return read_whole(m, "v", wish->comm, sizeof(wish->comm), error);
	if (strcmp(option, "count") == 0)
		return sd_bus_message_read(m, "v", "u", &wish->count);
	if (strcmp(option, "interval") == 0)
		return sd_bus_message_read(m, "v", "t", &wish->interval_ns);
	if (strcmp(option, "delay") == 0)
		return sd_bus_message_read(m, "v", "t", &wish->delay_ns);
	return call_no_option(option, error);
}

int triggercalls_add(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	struct trigger_wish wish = { .count = 1, .interval_ns = UINT64_C(1000000000) };
	_cleanup_(freep) char *message = NULL;
	uint32_t id;
	int r;

	r = read_whole(m, "s", wish.condition, sizeof(wish.condition), error);
	if (r >= 0)
		r = call_read_options(m, read_option, &wish, error);
	if (r < 0)
		return r;
	r = triggers_add(peer->interface->recorder.triggers, &wish, peer->caller.uid, &id,
			 &message);
	if (r < 0 && message)
		return sd_bus_error_set(
		    error, r == -EINVAL ? SD_BUS_ERROR_INVALID_ARGS : PTD_ERROR_FAILED, message);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_TRIGGERED, NULL);
	return sd_bus_reply_method_return(m, "u", id);
}

int triggercalls_remove(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	uint32_t id;
	int r;

	r = sd_bus_message_read(m, "u", &id);
	if (r < 0)
		return r;
	r = triggers_remove(peer->interface->recorder.triggers, id);
	if (r == -ENOENT)
		return sd_bus_error_setf(error, PTD_ERROR_NO_TRIGGER,
					 "there is no trigger %" PRIu32, id);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_UNTRIGGERED, NULL);
	return sd_bus_reply_method_return(m, "");
}

static int append_trigger(sd_bus_message *reply, const struct trigger_state *s)
{
	int r;

	if ((r = sd_bus_message_open_container(reply, 'a', "{sv}")) < 0 ||
	    (r = call_append_u32(reply, "id", s->id)) < 0 ||
	    (r = call_append_string(reply, "condition", s->wish.condition)) < 0 ||
	    (r = call_append_string(reply, "comm", s->wish.comm)) < 0 ||
	    (r = call_append_u32(reply, "count", s->wish.count)) < 0 ||
	    (r = call_append_u32(reply, "taken", s->n_taken)) < 0 ||
	    (r = call_append_u64(reply, "interval", s->wish.interval_ns)) < 0 ||
	    (r = call_append_u64(reply, "delay", s->wish.delay_ns)) < 0 ||
	    (r = call_append_u32(reply, "uid", (uint32_t)s->uid)) < 0 ||
	    (r = call_append_string(reply, "state", s->what)) < 0 ||
	    (r = call_append_string(reply, "error", s->error ? s->error : "")) < 0)
		return r;
	return sd_bus_message_close_container(reply);
}

int triggercalls_list(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const struct interface_peer *peer = userdata;
	const struct triggers *triggers = peer->interface->recorder.triggers;
	int r;

	(void)error;
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; r >= 0 && i < triggers_count(triggers); i++) {
		const struct trigger_state state = triggers_get(triggers, i);

		r = append_trigger(reply, &state);
	}
	return call_send_reply(reply, r);
}
