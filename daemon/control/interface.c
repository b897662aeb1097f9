/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/interface.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "daemon/control/recorder.h"
#include "daemon/proc/cgroup.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/spool/spool.h"
#include "daemon/trigger/triggers.h"
#include "ptd/control.h"
#include "util/message.h"

/* --- what the methods have in common ---------------------------------------------------------- */

/* Add an entry to the dictionary a{sv} that is open in @m. */
static int append_string(sd_bus_message *m, const char *key, const char *value)
{
	return sd_bus_message_append(m, "{sv}", key, "s", value);
}

static int append_u64(sd_bus_message *m, const char *key, uint64_t value)
{
	return sd_bus_message_append(m, "{sv}", key, "t", value);
}

static int append_u32(sd_bus_message *m, const char *key, uint32_t value)
{
	return sd_bus_message_append(m, "{sv}", key, "u", value);
}

/* Begin a reply that is an array of @contents. Return: 0, or negative errno. */
static int begin_reply(sd_bus_message *call, const char *contents, sd_bus_message **ret_reply)
{
	const int r = sd_bus_message_new_method_return(call, ret_reply);

	return r < 0 ? r : sd_bus_message_open_container(*ret_reply, 'a', contents);
}

/* Close the container that is open in @reply and send it, unless @r is an error of filling it. */
static int send_reply(sd_bus_message *reply, int r)
{
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int no_snapshot(sd_bus_error *error, const char *id)
{
	return sd_bus_error_setf(error, PTD_ERROR_NO_SNAPSHOT, "there is no snapshot \"%s\"", id);
}

/* An option of a call. */
struct option {
	const char *name;
	char type;   /* 'b', 't' or 'u', which is read into @value; or 0 */
	void *value; /* or what @read reads */
	int (*read)(sd_bus_message *m, const struct option *option, sd_bus_error *error);
	size_t size; /* of a text */
};

static int read_option(sd_bus_message *m, const char *name, const struct option *options, size_t n,
		       sd_bus_error *error)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, options[i].name) == 0)
			return options[i].read
				   ? options[i].read(m, &options[i], error)
				   : sd_bus_message_read(m, "v", (char[]){ options[i].type, 0 },
							 options[i].value);
	return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "there is no option \"%s\"",
				 name);
}

/* Read options, a{sv}. */
static int read_options(sd_bus_message *m, const struct option *options, size_t n,
			sd_bus_error *error)
{
	const char *name;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	while (r > 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0)
			r = read_option(m, name, options, n, error);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
		if (r >= 0)
			r = 1;
	}
	return r < 0 ? r : 0;
}

/* Read the value of an option that is a text which others will see; a longer one is cut. */
static int read_text(sd_bus_message *m, const struct option *option, sd_bus_error *error)
{
	const char *text;
	int r;

	r = sd_bus_message_read(m, "v", "s", &text);
	if (r < 0)
		return r;
	(void)snprintf(option->value, option->size, "%s", text);
	printable_clean(option->value, strlen(option->value));
	return 0;
}

/* --- snapshots -------------------------------------------------------------------------------- */

/* Of all clients together. */
#define WAITERS_MAX 256u

static int read_cpus(sd_bus_message *m, const struct option *option, sd_bus_error *error)
{
	struct scope *scope = option->value;
	const char *text;
	int r;

	r = sd_bus_message_read(m, "v", "s", &text);
	if (r < 0)
		return r;
	if (cpulist_parse(text, &scope->cpus) < 0)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
					 "\"%s\" is no list of CPUs: 0-3,8 is one", text);
	scope->some_cpus = scope->cpus.end > 0;
	return 0;
}

static int read_cgroup(sd_bus_message *m, const struct option *option, sd_bus_error *error)
{
	struct scope *scope = option->value;
	const char *name;
	int r;

	r = sd_bus_message_read(m, "v", "s", &name);
	if (r < 0 || !name[0])
		return r;
	(void)snprintf(scope->cgroup, sizeof(scope->cgroup), "%s", name);
	printable_clean(scope->cgroup, strlen(scope->cgroup));
	if (strcmp(scope->cgroup, name) != 0 || !cgroup_name_is_good(name))
		return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
					"that is neither the name nor the path of a control group: "
					"nginx.service or /system.slice/nginx.service is one");
	return 0;
}

static int take_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	struct scope scope = {};
	const struct option options[] = {
		{ "since", 't', .value = &scope.since_ns },
		{ "pid", 'u', .value = &scope.pid },
		{ "cgroup", .value = &scope, .read = read_cgroup },
		{ "cpus", .value = &scope, .read = read_cpus },
		{ "command", 0, scope.command, read_text, sizeof(scope.command) },
		{ "command_pid", 'u', .value = &scope.command_pid },
		{ "started", 't', .value = &scope.started_ns },
		{ "trigger", 0, scope.trigger, read_text, sizeof(scope.trigger) },
		{ "trigger_tid", 'u', .value = &scope.trigger_tid },
		{ "trigger_time", 't', .value = &scope.trigger_ns },
	};
	uint32_t n_cpus;
	const char *id;
	int r;

	r = read_options(m, options, ARRAY_LEN(options), error);
	if (r < 0)
		return r;
	n_cpus = recorder->ops->status(recorder->userdata).n_cpus;
	if (scope.cpus.end > n_cpus)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
					 "there is no CPU %" PRIu32 ": there are %" PRIu32,
					 scope.cpus.end - 1, n_cpus);
	r = recorder->ops->take_snapshot(recorder->userdata, &scope, &peer->caller, &id);
	if (r == -EBUSY)
		return sd_bus_error_setf(error, PTD_ERROR_BUSY,
					 "%u snapshots are waiting to be written already",
					 JOBS_WAITING_MAX);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_TOOK, id);
	return sd_bus_reply_method_return(m, "s", id);
}

static int reply_done(sd_bus_message *call, const char *directory, const struct job *job)
{
	const struct snapshot_result *r = &job->result;
	_cleanup_(freep) char *path = NULL;

	if (job->error < 0)
		return sd_bus_reply_method_errorf(call, PTD_ERROR_FAILED, "%s", job->message);
	path = message_text("%s/%s", directory, job->id);
	if (!path)
		return -ENOMEM;
	return sd_bus_reply_method_return(
	    call, "a{sv}", 11, "id", "s", job->id, "path", "s", path, "bytes", "t", r->bytes,
	    "pt_bytes", "t", r->bytes_pt, "pt_overwritten", "t", r->bytes_overwritten,
	    "complete_since", "t", r->complete_since_ns, "taken", "t", r->taken_ns, "cpus", "u",
	    r->n_cpus, "objects", "u", r->n_objects, "objects_missing", "u", r->n_missing,
	    "objects_without_room", "u", r->n_without_room);
}

/* Have the call answered later. Return: 1, which is what the method is to return; or negative
 * errno, and why in @error if there are too many. */
static int put_off(struct waiters *waiters, sd_bus_message *call, sd_bus_error *error)
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

static int wait_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	struct interface *interface = peer->interface;
	const struct job *job;
	const char *id;
	int r;

	r = sd_bus_message_read(m, "s", &id);
	if (r < 0)
		return r;
	job = jobs_find(interface->recorder.jobs, id);
	if (!job)
		return no_snapshot(error, id);
	if (job->done)
		return reply_done(m, spool_path(interface->recorder.spool), job);
	return put_off(&interface->waiters, m, error);
}

static int append_snapshot(sd_bus_message *reply, const struct spool_entry *e)
{
	return sd_bus_message_append(
	    reply, "a{sv}", 12, "id", "s", e->id, "created", "s", e->created, "bytes", "t",
	    e->bytes, "cpus", "u", e->n_cpus, "command", "s", e->command, "pid", "u", e->pid,
	    "objects_missing", "u", e->n_missing, "records_lost", "t", e->n_records_lost,
	    "pt_dropped", "t", e->bytes_dropped, "pt_overwritten", "t", e->bytes_overwritten,
	    "command_complete", "b", !e->command_cut, "kept", "b", e->kept);
}

static int list_snapshots(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(freep) struct spool_entry *entries = NULL;
	const struct interface_peer *peer = userdata;
	size_t n;
	int r;

	r = spool_list(peer->interface->recorder.spool, &entries, &n);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	r = begin_reply(m, "a{sv}", &reply);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = append_snapshot(reply, &entries[i]);
	return send_reply(reply, r);
}

/* Read the argument that names a snapshot, and find its id, which is what the log states. */
static int read_id(sd_bus_message *m, const struct interface_peer *peer,
		   char ret_id[static SNAPID_SIZE], sd_bus_error *error)
{
	const char *name;
	int r;

	r = sd_bus_message_read(m, "s", &name);
	if (r < 0)
		return r;
	r = spool_resolve(peer->interface->recorder.spool, name, ret_id);
	if (r == -ENOENT)
		return no_snapshot(error, name);
	return r < 0 ? sd_bus_error_set_errno(error, r) : 0;
}

static int open_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	_cleanup_(fd_closep) int fd = -1;
	char id[SNAPID_SIZE];
	int r;

	r = read_id(m, peer, id, error);
	if (r < 0)
		return r;
	r = spool_open(peer->interface->recorder.spool, id, &fd);
	if (r == -ENOENT)
		return no_snapshot(error, id);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_READ, id);
	return sd_bus_reply_method_return(m, "h", fd);
}

static int remove_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	char id[SNAPID_SIZE];
	int r;

	r = read_id(m, peer, id, error);
	if (r < 0)
		return r;
	r = recorder->ops->remove_snapshot(recorder->userdata, id);
	if (r == -ENOENT)
		return no_snapshot(error, id);
	if (r == -EPERM)
		return sd_bus_error_setf(error, PTD_ERROR_KEPT,
					 "snapshot %s is kept: `ptctl keep --release` takes that "
					 "back",
					 id);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_REMOVED, id);
	return sd_bus_reply_method_return(m, "");
}

static int keep_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	char id[SNAPID_SIZE];
	int keep, r;

	r = read_id(m, peer, id, error);
	if (r == 0)
		r = sd_bus_message_read(m, "b", &keep);
	if (r < 0)
		return r;
	r = spool_keep(peer->interface->recorder.spool, id, keep);
	if (r == -ENOENT)
		return no_snapshot(error, id);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, keep ? CALLER_KEPT : CALLER_RELEASED, id);
	return sd_bus_reply_method_return(m, "");
}

/* --- trigger calls ---------------------------------------------------------------------------- */

static int copy_whole(const char *text, char *ret_text, size_t size, sd_bus_error *error)
{
	if (strlen(text) >= size)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
					 "a text is longer than %zu bytes", size - 1);
	strcpy(ret_text, text);
	return 0;
}

/* Read the value of an option that is a text which must not be cut. */
static int read_whole(sd_bus_message *m, const struct option *option, sd_bus_error *error)
{
	const char *text;
	const int r = sd_bus_message_read(m, "v", "s", &text);

	return r < 0 ? r : copy_whole(text, option->value, option->size, error);
}

static int triggercalls_add(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	struct trigger_wish wish = { .count = 1, .interval_ns = UINT64_C(1000000000) };
	const struct option options[] = {
		{ "comm", 0, wish.comm, read_whole, sizeof(wish.comm) },
		{ "count", 'u', .value = &wish.count },
		{ "interval", 't', .value = &wish.interval_ns },
		{ "delay", 't', .value = &wish.delay_ns },
	};
	_cleanup_(freep) char *message = NULL;
	const char *condition;
	uint32_t id;
	int r;

	r = sd_bus_message_read(m, "s", &condition);
	if (r >= 0)
		r = copy_whole(condition, wish.condition, sizeof(wish.condition), error);
	if (r >= 0)
		r = read_options(m, options, ARRAY_LEN(options), error);
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
	return sd_bus_message_append(
	    reply, "a{sv}", 10, "id", "u", s->id, "condition", "s", s->wish.condition, "comm", "s",
	    s->wish.comm, "count", "u", s->wish.count, "taken", "u", s->n_taken, "interval", "t",
	    s->wish.interval_ns, "delay", "t", s->wish.delay_ns, "uid", "u", s->uid, "state", "s",
	    s->what, "error", "s", s->error ? s->error : "");
}

static int triggercalls_list(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const struct interface_peer *peer = userdata;
	const struct triggers *triggers = peer->interface->recorder.triggers;
	int r;

	r = begin_reply(m, "a{sv}", &reply);
	for (size_t i = 0; r >= 0 && i < triggers_count(triggers); i++) {
		const struct trigger_state state = triggers_get(triggers, i);

		r = append_trigger(reply, &state);
	}
	return send_reply(reply, r);
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

static int append_refused_user(sd_bus_message *reply, enum recorder_shared shared,
			       const struct share_user *user)
{
	int r = 0;

	for (enum share_reason reason = 0; r >= 0 && reason < _SHARE_REASON_MAX; reason++)
		if (user->refused[reason] > 0)
			r = sd_bus_message_append(reply, "a{sv}", 4, "what", "s",
						  shared_names[shared], "uid", "u", user->uid,
						  "reason", "s", reason_names[reason], "times", "t",
						  user->refused[reason]);
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
	    (r = append_u64(reply, "rings_since", s->rings_ns)) < 0 ||
	    (r = append_u32(reply, "cpus", s->n_cpus)) < 0 ||
	    (r = append_u32(reply, "cpus_recording", s->cpus.n_recording)) < 0 ||
	    (r = append_u32(reply, "cpus_offline", s->cpus.n_offline)) < 0 ||
	    (r = append_u32(reply, "cpus_busy", s->cpus.n_busy)) < 0 ||
	    (r = append_u32(reply, "cpus_failed", s->cpus.n_failed)) < 0 ||
	    (r = sd_bus_message_append(reply, "{sv}", "paused", "b", s->cpus.paused)) < 0 ||
	    (r = append_u64(reply, "aux_size", s->cpus.aux_size)) < 0 ||
	    (r = append_u64(reply, "switch_size", s->cpus.switch_size)) < 0 ||
	    (r = append_u64(reply, "sideband_bytes", s->sideband_bytes)) < 0 ||
	    (r = append_u64(reply, "sideband_max", s->sideband_max)) < 0 ||
	    (r = append_u64(reply, "sideband_lost", s->sideband_lost)) < 0 ||
	    (r = append_u64(reply, "objects", s->n_objects)) < 0 ||
	    (r = append_u64(reply, "snapshots", spool_count(recorder->spool))) < 0 ||
	    (r = append_u32(reply, "pending", s->n_pending)) < 0 ||
	    (r = append_u64(reply, "snapshots_taken", s->n_taken)) < 0 ||
	    (r = append_u64(reply, "snapshots_failed", s->n_failed)) < 0 ||
	    (r = append_u64(reply, "snapshots_removed", s->n_removed)) < 0 ||
	    (r = append_string(reply, "snapshots_path", spool_path(recorder->spool))) < 0)
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

	if ((r = begin_reply(m, "{sv}", &reply)) < 0 ||
	    (r = append_string(reply, "version", PTD_VERSION)) < 0 ||
	    (r = append_string(reply, "source", s.source)) < 0 ||
	    (r = append_status(reply, recorder, &s)) < 0 ||
	    (r = append_refused(reply, recorder)) < 0)
		return r;
	return send_reply(reply, 0);
}

static int open_source(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	int fd, timing = false, r;
	/* Whether the program writes MTC and CYC packets. */
	const struct option options[] = { { "timing", 'b', .value = &timing } };

	r = read_options(m, options, ARRAY_LEN(options), error);
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

static int pause_or_resume(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const bool pause = sd_bus_message_is_method_call(m, NULL, "Pause") > 0;
	const struct interface_peer *peer = userdata;
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
	SD_BUS_METHOD("Pause", "", "", pause_or_resume, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Resume", "", "", pause_or_resume, SD_BUS_VTABLE_UNPRIVILEGED),
	METHOD("TakeSnapshot", "a{sv}", SD_BUS_PARAM(options), "s", SD_BUS_PARAM(id),
	       take_snapshot),
	METHOD("WaitSnapshot", "s", SD_BUS_PARAM(id), "a{sv}", SD_BUS_PARAM(result), wait_snapshot),
	METHOD("ListSnapshots", "", , "aa{sv}", SD_BUS_PARAM(snapshots), list_snapshots),
	METHOD("OpenSnapshot", "s", SD_BUS_PARAM(id), "h", SD_BUS_PARAM(directory), open_snapshot),
	METHOD("RemoveSnapshot", "s", SD_BUS_PARAM(id), "", , remove_snapshot),
	METHOD("KeepSnapshot", "sb", SD_BUS_PARAM(id) SD_BUS_PARAM(keep), "", , keep_snapshot),
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

void interface_job_done(struct interface *interface, const struct job *job)
{
	struct waiters *waiters = &interface->waiters;
	size_t n = 0;

	for (size_t i = 0; i < waiters->calls.n; i++) {
		sd_bus_message *call = waiters->calls.items[i];
		const char *asked;

		if (sd_bus_message_rewind(call, true) >= 0 &&
		    sd_bus_message_read(call, "s", &asked) >= 0 && strcmp(asked, job->id) != 0) {
			waiters->calls.items[n++] = call;
			continue;
		}
		/* A client that has disconnected does not get the reply. */
		(void)reply_done(call, spool_path(interface->recorder.spool), job);
		(void)sd_bus_message_unref(call);
	}
	waiters->calls.n = n;
}

void waiters_deinit(struct waiters *waiters)
{
	vec_deinit_each(&waiters->calls, call, sd_bus_message_unref(*call));
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
