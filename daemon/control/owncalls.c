/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/owncalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control/call.h"
#include "daemon/control/interface.h"
#include "daemon/decoder/owns.h"
#include "daemon/tasks/scope.h"
#include "ptd/control.h"

struct own_options {
	struct scope scope;
	struct decoder_wish wish;
};

/* @userdata is a struct own_options. */
static int read_own_option(sd_bus_message *m, const char *option, void *userdata,
			   sd_bus_error *error)
{
	struct own_options *o = userdata;

	if (strcmp(option, "since") == 0)
		return sd_bus_message_read(m, "v", "t", &o->scope.since_ns);
	if (strcmp(option, "pid") == 0)
		return sd_bus_message_read(m, "v", "u", &o->wish.pid);
	if (strcmp(option, "tid") == 0)
		return sd_bus_message_read(m, "v", "u", &o->wish.tid);
	if (strcmp(option, "last") == 0)
		return sd_bus_message_read(m, "v", "t", &o->wish.last);
	if (strcmp(option, "time") == 0)
		return call_read_text(m, o->wish.time, sizeof(o->wish.time));
	return call_no_option(option, error);
}

static int read_own(sd_bus_message *m, struct own_options *ret_options, sd_bus_error *error)
{
	struct own_options o = {};
	const char *format;
	int r;

	r = sd_bus_message_read(m, "s", &format);
	if (r >= 0)
		r = call_read_options(m, read_own_option, &o, error);
	if (r < 0)
		return r;
	(void)snprintf(o.wish.format, sizeof(o.wish.format), "%s", format);
	if (strlen(format) >= sizeof(o.wish.format) || !decoder_wish_is_good(&o.wish))
		return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
					"that is no format, or no time, of ptdecode");
	*ret_options = o;
	return 0;
}

int owncalls_take(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	_cleanup_(fd_closep) int output = -1;
	struct own_options options;
	const char *id;
	int r;

	r = read_own(m, &options, error);
	if (r < 0)
		return r;
	options.scope.is_own = true;
	options.scope.uid = peer->caller.uid;
	options.scope.gid = peer->caller.gid;
	r = recorder->ops->take_own(recorder->userdata, &options.scope, &options.wish,
				    &peer->caller, &id, &output);
	if (r == -EBUSY)
		return sd_bus_error_setf(error, PTD_ERROR_BUSY,
					 "the snapshot that user %u asked for before is not "
					 "decoded yet, or those of too many others",
					 (unsigned)peer->caller.uid);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_TOOK_OWN, id);
	return sd_bus_reply_method_return(m, "sh", id, output);
}

static int reply_own(sd_bus_message *call, const char *id, const struct own_result *result)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	if (result->error < 0)
		return sd_bus_reply_method_errorf(
		    call, result->error == -ECANCELED ? PTD_ERROR_BUSY : PTD_ERROR_FAILED, "%s",
		    result->text);
	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r < 0)
		return r;
	if ((r = call_append_string(reply, "id", id)) < 0 ||
	    (r = call_append_u32(reply, "status", result->status)) < 0 ||
	    (r = call_append_string(reply, "messages", result->text)) < 0 ||
	    (r = call_append_u32(reply, "objects_missing", result->n_missing)) < 0 ||
	    (r = call_append_u32(reply, "processes_left_out", result->n_left_out)) < 0)
		return r;
	return call_send_reply(reply, 0);
}

int owncalls_wait(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	const struct own_result *result;
	const char *id;
	int r;

	r = sd_bus_message_read(m, "s", &id);
	if (r < 0)
		return r;
	result = recorder->ops->find_own(recorder->userdata, id, peer->caller.uid);
	if (!result)
		return call_no_snapshot(error, id);
	return result->done ? reply_own(m, id, result)
			    : waiters_put_off(&peer->interface->waiters, m, error);
}

/* What a call of WaitOwn is answered with. */
struct answer {
	const char *id;
	const struct own_result *result;
};

/* A client that waits gets some reply, even if what ptdecode said is no text for D-Bus. */
static int answer_call(sd_bus_message *call, const void *userdata)
{
	const struct answer *answer = userdata;
	const int r = reply_own(call, answer->id, answer->result);

	return r < 0 ? sd_bus_reply_method_errno(call, r, NULL) : r;
}

void owncalls_done(struct interface *interface, const char *id, const struct own_result *result)
{
	const struct answer answer = { id, result };

	waiters_answer(&interface->waiters, id, answer_call, &answer);
}
