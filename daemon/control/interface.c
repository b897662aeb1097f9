/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/interface.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control/call.h"
#include "daemon/control/recorder.h"
#include "daemon/control/snapshotcalls.h"
#include "daemon/spool/spool.h"
#include "daemon/trigger/triggers.h"
#include "ptd/control.h"

/* --- trigger calls ---------------------------------------------------------------------------- */

/* The methods of org.ptd.Recorder1 (ptd/control.h) that are about triggers. */

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

static int triggercalls_add(sd_bus_message *m, void *userdata, sd_bus_error *error)
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

static int triggercalls_remove(sd_bus_message *m, void *userdata, sd_bus_error *error)
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

static int triggercalls_list(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const struct interface_peer *peer = userdata;
	const struct triggers *triggers = peer->interface->recorder.triggers;
	int r;

	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; r >= 0 && i < triggers_count(triggers); i++) {
		const struct trigger_state state = triggers_get(triggers, i);

		r = append_trigger(reply, &state);
	}
	return call_send_reply(reply, r);
}

/* --- interface -------------------------------------------------------------------------------- */

/* The words of ptd(8), as are those of the next table. */
static const char *const shared_names[] = {
	[RECORDER_OBJECTS] = "objects",
	[RECORDER_CODE] = "code",
	[RECORDER_JITDUMPS] = "jitdumps",
	[RECORDER_SIDEBAND] = "sideband",
};

static_assert(ARRAY_LEN(shared_names) == _RECORDER_SHARED_MAX, "each has a name");

static const char *const reason_names[] = {
	[SHARE_REASON_SHARE] = "share",
	[SHARE_REASON_TAKEN_BACK] = "taken-back",
	[SHARE_REASON_DISK] = "disk",
	[SHARE_REASON_TIME] = "time",
	[SHARE_REASON_UNREADABLE] = "unreadable",
};

static_assert(ARRAY_LEN(reason_names) == _SHARE_REASON_MAX, "each has a name");

static int append_refused_for(sd_bus_message *reply, enum recorder_shared shared,
			      const struct share_user *user, enum share_reason reason)
{
	int r;

	if ((r = sd_bus_message_open_container(reply, 'a', "{sv}")) < 0 ||
	    (r = call_append_string(reply, "what", shared_names[shared])) < 0 ||
	    (r = call_append_u32(reply, "uid", user->uid)) < 0 ||
	    (r = call_append_string(reply, "reason", reason_names[reason])) < 0 ||
	    (r = call_append_u64(reply, "times", user->refused[reason])) < 0)
		return r;
	return sd_bus_message_close_container(reply);
}

static int append_refused_user(sd_bus_message *reply, enum recorder_shared shared,
			       const struct share_user *user)
{
	int r = 0;

	for (enum share_reason reason = 0; r >= 0 && reason < _SHARE_REASON_MAX; reason++)
		if (user->refused[reason] > 0)
			r = append_refused_for(reply, shared, user, reason);
	return r;
}

/* Append what was refused to which users. */
static int append_refused(sd_bus_message *reply, const struct recorder *recorder)
{
	int r;

	if ((r = sd_bus_message_open_container(reply, 'e', "sv")) < 0 ||
	    (r = sd_bus_message_append(reply, "s", "refused")) < 0 ||
	    (r = sd_bus_message_open_container(reply, 'v', "aa{sv}")) < 0 ||
	    (r = sd_bus_message_open_container(reply, 'a', "a{sv}")) < 0)
		return r;
	for (enum recorder_shared i = 0; i < _RECORDER_SHARED_MAX; i++) {
		struct share share;

		recorder->ops->get_share(recorder->userdata, i, &share);
		for (size_t k = 0; r >= 0 && k < share.n_users; k++)
			r = append_refused_user(reply, i, &share.users[k]);
	}
	if (r < 0 || (r = sd_bus_message_close_container(reply)) < 0 ||
	    (r = sd_bus_message_close_container(reply)) < 0)
		return r;
	return sd_bus_message_close_container(reply);
}

static int append_status(sd_bus_message *reply, const struct recorder *recorder,
			 const struct recorder_status *s)
{
	int r;

	if ((r = sd_bus_message_append(reply, "{sv}", "recording", "b", s->recording)) < 0 ||
	    (r = call_append_u64(reply, "rings_since", s->rings_ns)) < 0 ||
	    (r = call_append_u32(reply, "cpus", s->n_cpus)) < 0 ||
	    (r = call_append_u32(reply, "cpus_recording", s->cpus.n_recording)) < 0 ||
	    (r = call_append_u32(reply, "cpus_offline", s->cpus.n_offline)) < 0 ||
	    (r = call_append_u32(reply, "cpus_busy", s->cpus.n_busy)) < 0 ||
	    (r = call_append_u32(reply, "cpus_failed", s->cpus.n_failed)) < 0 ||
	    (r = sd_bus_message_append(reply, "{sv}", "paused", "b", s->cpus.paused)) < 0 ||
	    (r = call_append_u64(reply, "aux_size", s->cpus.aux_size)) < 0 ||
	    (r = call_append_u64(reply, "switch_size", s->cpus.switch_size)) < 0 ||
	    (r = call_append_u64(reply, "sideband_bytes", s->sideband_bytes)) < 0 ||
	    (r = call_append_u64(reply, "sideband_max", s->sideband_max)) < 0 ||
	    (r = call_append_u64(reply, "sideband_lost", s->sideband_lost)) < 0 ||
	    (r = call_append_u64(reply, "objects", s->n_objects)) < 0 ||
	    (r = call_append_u64(reply, "snapshots", spool_count(recorder->spool))) < 0 ||
	    (r = call_append_u32(reply, "pending", s->n_pending)) < 0 ||
	    (r = call_append_u64(reply, "snapshots_taken", s->n_taken)) < 0 ||
	    (r = call_append_u64(reply, "snapshots_failed", s->n_failed)) < 0 ||
	    (r = call_append_u64(reply, "snapshots_removed", s->n_removed)) < 0 ||
	    (r = call_append_string(reply, "snapshots_path", spool_path(recorder->spool))) < 0)
		return r;
	return 0;
}

static int get_status(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	const struct recorder_status s = recorder->ops->status(recorder->userdata);
	int r;

	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r < 0)
		return r;
	if ((r = call_append_string(reply, "version", PTD_VERSION)) < 0 ||
	    (r = call_append_string(reply, "source", s.source)) < 0 ||
	    (r = append_status(reply, recorder, &s)) < 0 ||
	    (r = append_refused(reply, recorder)) < 0)
		return r;
	return call_send_reply(reply, 0);
}

/* @userdata is an int: whether the program writes MTC and CYC packets. */
static int read_source_option(sd_bus_message *m, const char *option, void *userdata,
			      sd_bus_error *error)
{
	if (strcmp(option, "timing") == 0)
		return sd_bus_message_read(m, "v", "b", userdata);
	return call_no_option(option, error);
}

static int open_source(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	int fd, timing = false, r;

	r = call_read_options(m, read_source_option, &timing, error);
	if (r < 0)
		return r;
	r = recorder->ops->open_pool(recorder->userdata, timing, &fd);
	if (r == -EOPNOTSUPP)
		return sd_bus_error_set(error, PTD_ERROR_NOT_EMULATED,
					"the recorder records hardware, everything that runs: "
					"there is no program to start");
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_RECORDED, NULL);
	return sd_bus_reply_method_return(m, "sh", "emu", fd);
}

static int pause_or_resume(sd_bus_message *m, const struct interface_peer *peer, bool pause,
			   sd_bus_error *error)
{
	const struct recorder *recorder = &peer->interface->recorder;
	int r;

	r = recorder->ops->pause(recorder->userdata, pause);
	if (r == -EOPNOTSUPP)
		return sd_bus_error_set(error, PTD_ERROR_NOT_HARDWARE,
					"the recorder uses the software source: there is no "
					"hardware to give to others");
	if (r == -EBUSY)
		return sd_bus_error_set(error, PTD_ERROR_BUSY,
					"a snapshot is copying the rings, try again");
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, pause ? CALLER_PAUSED : CALLER_RESUMED, NULL);
	return sd_bus_reply_method_return(m, "");
}

static int pause_recorder(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return pause_or_resume(m, userdata, true, error);
}

static int resume_recorder(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return pause_or_resume(m, userdata, false, error);
}

static int reload(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	int r;

	r = recorder->ops->reload(recorder->userdata, &peer->caller);
	if (r < 0)
		return sd_bus_error_set(error, PTD_ERROR_FAILED,
					"the settings cannot be read and stay as they are, the log "
					"of ptd says why");
	return sd_bus_reply_method_return(m, "");
}

/* UNPRIVILEGED: without it sd-bus refuses users other than root before the method is called. */
#define METHOD(name, in, in_names, out, out_names, call)                   \
	SD_BUS_METHOD_WITH_NAMES(name, in, in_names, out, out_names, call, \
				 SD_BUS_VTABLE_UNPRIVILEGED)

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	METHOD("GetStatus", "", , "a{sv}", SD_BUS_PARAM(status), get_status),
	METHOD("OpenSource", "a{sv}", SD_BUS_PARAM(options), "sh",
	       SD_BUS_PARAM(name) SD_BUS_PARAM(pool), open_source),
	SD_BUS_METHOD("Pause", "", "", pause_recorder, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Resume", "", "", resume_recorder, SD_BUS_VTABLE_UNPRIVILEGED),
	METHOD("TakeSnapshot", "a{sv}", SD_BUS_PARAM(options), "s", SD_BUS_PARAM(id),
	       snapshotcalls_take),
	METHOD("WaitSnapshot", "s", SD_BUS_PARAM(id), "a{sv}", SD_BUS_PARAM(result),
	       snapshotcalls_wait),
	METHOD("ListSnapshots", "", , "aa{sv}", SD_BUS_PARAM(snapshots), snapshotcalls_list),
	METHOD("OpenSnapshot", "s", SD_BUS_PARAM(id), "h", SD_BUS_PARAM(directory),
	       snapshotcalls_open),
	METHOD("RemoveSnapshot", "s", SD_BUS_PARAM(id), "", , snapshotcalls_remove),
	METHOD("KeepSnapshot", "sb", SD_BUS_PARAM(id) SD_BUS_PARAM(keep), "", , snapshotcalls_keep),
	METHOD("AddTrigger", "sa{sv}", SD_BUS_PARAM(condition) SD_BUS_PARAM(options), "u",
	       SD_BUS_PARAM(id), triggercalls_add),
	METHOD("RemoveTrigger", "u", SD_BUS_PARAM(id), "", , triggercalls_remove),
	METHOD("ListTriggers", "", , "aa{sv}", SD_BUS_PARAM(triggers), triggercalls_list),
	SD_BUS_METHOD("Reload", "", "", reload, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

/* Clients that expect a bus, such as gdbus, first ask for a name of their own. Any name will do. */
static int hello(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return sd_bus_reply_method_return(m, "s", ":1.1");
}

static const sd_bus_vtable bus_vtable[] = {
	SD_BUS_VTABLE_START(0),
	METHOD("Hello", "", , "s", SD_BUS_PARAM(name), hello),
	SD_BUS_VTABLE_END,
};

int interface_attach(sd_bus *bus, struct interface_peer *peer)
{
	int r;

	r = sd_bus_add_object_vtable(bus, NULL, PTD_CONTROL_OBJECT, PTD_CONTROL_INTERFACE, vtable,
				     peer);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/DBus",
					     "org.freedesktop.DBus", bus_vtable, peer);
	return r < 0 ? r : 0;
}

/* --- waiters ---------------------------------------------------------------------------------- */

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
