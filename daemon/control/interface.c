/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/interface.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "daemon/control/call.h"
#include "daemon/control/recorder.h"
#include "daemon/control/triggercalls.h"
#include "daemon/decoder/owns.h"
#include "daemon/proc/cgroup.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/spool/spool.h"
#include "ptd/control.h"

#define WAITERS_MAX 256u

static const char *const shared_names[] = {
	[RECORDER_OBJECTS] = "objects",   [RECORDER_CODE] = "code",
	[RECORDER_JITDUMPS] = "jitdumps", [RECORDER_REQUESTS] = "requests",
	[RECORDER_RINGS] = "rings",       [RECORDER_RECORDS] = "records",
	[RECORDER_SIDEBAND] = "sideband", [RECORDER_SNAPSHOTS] = "snapshots",
};

static_assert(ARRAY_LEN(shared_names) == _RECORDER_SHARED_MAX, "each has a name");

static int append_refused_user(sd_bus_message *reply, enum recorder_shared shared,
			       const struct share_user *user)
{
	int r;

	if ((r = sd_bus_message_open_container(reply, 'a', "{sv}")) < 0 ||
	    (r = call_append_string(reply, "what", shared_names[shared])) < 0 ||
	    (r = call_append_u32(reply, "uid", user->uid)) < 0 ||
	    (r = call_append_u64(reply, "times", user->n_refused)) < 0)
		return r;
	return sd_bus_message_close_container(reply);
}

/* Return: whether the peer may see what concerns the user. */
static bool sees_user(const struct interface_peer *peer, uid_t uid)
{
	return peer->access == ACCESS_ALL || uid == peer->caller.uid;
}

/* Append what was refused to which users. */
static int append_refused(sd_bus_message *reply, const struct interface_peer *peer)
{
	const struct recorder *recorder = &peer->interface->recorder;
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
			if (share.users[k].n_refused > 0 && sees_user(peer, share.users[k].uid))
				r = append_refused_user(reply, i, &share.users[k]);
	}
	if (r < 0 || (r = sd_bus_message_close_container(reply)) < 0 ||
	    (r = sd_bus_message_close_container(reply)) < 0)
		return r;
	return sd_bus_message_close_container(reply);
}

/* What concerns the machine, and the programs of all users. */
static int append_all(sd_bus_message *reply, const struct recorder *recorder,
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
	const bool all = peer->access == ACCESS_ALL;
	int r;

	(void)error;
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r < 0)
		return r;
	if ((r = call_append_string(reply, "version", PTD_VERSION)) < 0 ||
	    (r = call_append_string(reply, "source", s.source)) < 0 ||
	    (!all && (r = sd_bus_message_append(reply, "{sv}", "own", "b", true)) < 0) ||
	    (!all && (r = call_append_u64(reply, "rings_since", s.rings_ns)) < 0) ||
	    (all && (r = append_all(reply, recorder, &s)) < 0) ||
	    (r = append_refused(reply, peer)) < 0)
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
	r = recorder->ops->open_pool(recorder->userdata, peer->caller.uid,
				     peer->access == ACCESS_ALL, timing, &fd);
	if (r == -EOPNOTSUPP)
		return sd_bus_error_set(error, PTD_ERROR_NOT_EMULATED,
					"the recorder records hardware, everything that runs: "
					"there is no program to start");
	if (r == -EDQUOT)
		return sd_bus_error_setf(error, PTD_ERROR_BUSY,
					 "so many users are recorded that there are no rings for "
					 "user %u: try again when they are done",
					 (unsigned)peer->caller.uid);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	/* Anybody may call this as often as he likes, and fill the log by it. */
	if (peer->access == ACCESS_ALL)
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

static int read_cpus(sd_bus_message *m, struct scope *scope, sd_bus_error *error)
{
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

static int read_cgroup(sd_bus_message *m, struct scope *scope, sd_bus_error *error)
{
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

/* @userdata is the struct scope of TakeSnapshot. */
static int read_scope_option(sd_bus_message *m, const char *option, void *userdata,
			     sd_bus_error *error)
{
	struct scope *scope = userdata;

	if (strcmp(option, "since") == 0)
		return sd_bus_message_read(m, "v", "t", &scope->since_ns);
	if (strcmp(option, "pid") == 0)
		return sd_bus_message_read(m, "v", "u", &scope->pid);
	if (strcmp(option, "cgroup") == 0)
		return read_cgroup(m, scope, error);
	if (strcmp(option, "cpus") == 0)
		return read_cpus(m, scope, error);
	if (strcmp(option, "command") == 0)
		return call_read_text(m, scope->command, sizeof(scope->command));
	if (strcmp(option, "command_pid") == 0)
		return sd_bus_message_read(m, "v", "u", &scope->command_pid);
	if (strcmp(option, "started") == 0)
		return sd_bus_message_read(m, "v", "t", &scope->started_ns);
	if (strcmp(option, "trigger") == 0)
		return call_read_text(m, scope->trigger, sizeof(scope->trigger));
	if (strcmp(option, "trigger_tid") == 0)
		return sd_bus_message_read(m, "v", "u", &scope->trigger_tid);
	if (strcmp(option, "trigger_time") == 0)
		return sd_bus_message_read(m, "v", "t", &scope->trigger_ns);
	return call_no_option(option, error);
}

static int take_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	struct scope scope = {};
	uint32_t n_cpus;
	const char *id;
	int r;

	r = call_read_options(m, read_scope_option, &scope, error);
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
					 "%u snapshots are waiting to be written already, or as "
					 "many of user %u as is his share",
					 JOBS_WAITING_MAX, (unsigned)peer->caller.uid);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_TOOK, id);
	return sd_bus_reply_method_return(m, "s", id);
}

static int no_snapshot(sd_bus_error *error, const char *id)
{
	return sd_bus_error_setf(error, PTD_ERROR_NO_SNAPSHOT, "there is no snapshot \"%s\"", id);
}

static int reply_done(sd_bus_message *call, const char *directory, const struct job *job)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(freep) char *path = NULL;
	int r;

	if (job->error < 0)
		return sd_bus_reply_method_errorf(call, PTD_ERROR_FAILED, "%s", job->message);

	if (asprintf(&path, "%s/%s", directory, job->id) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r < 0)
		return r;
	if ((r = call_append_string(reply, "id", job->id)) < 0 ||
	    (r = call_append_string(reply, "path", path)) < 0 ||
	    (r = call_append_u64(reply, "bytes", job->result.bytes)) < 0 ||
	    (r = call_append_u64(reply, "pt_bytes", job->result.bytes_pt)) < 0 ||
	    (r = call_append_u64(reply, "pt_overwritten", job->result.bytes_overwritten)) < 0 ||
	    (r = call_append_u64(reply, "complete_since", job->result.complete_since_ns)) < 0 ||
	    (r = call_append_u64(reply, "taken", job->result.taken_ns)) < 0 ||
	    (r = call_append_u32(reply, "cpus", job->result.n_cpus)) < 0 ||
	    (r = call_append_u32(reply, "objects", job->result.n_objects)) < 0 ||
	    (r = call_append_u32(reply, "objects_missing", job->result.n_missing)) < 0)
		return r;
	return call_send_reply(reply, 0);
}

/* Have the call answered later. */
static int put_off(struct interface *interface, sd_bus_message *m, sd_bus_error *error)
{
	int r;

	if (interface->waiters.n >= WAITERS_MAX)
		return sd_bus_error_set(error, PTD_ERROR_BUSY, "too many calls are waiting");
	r = vec_push(&interface->waiters, m);
	if (r < 0)
		return r;
	(void)sd_bus_message_ref(m);
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
	if (!job || job->scope.is_own)
		return no_snapshot(error, id);
	if (job->done)
		return reply_done(m, spool_path(interface->recorder.spool), job);
	return put_off(interface, m, error);
}

/* --- own snapshots ---------------------------------------------------------------------------- */

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

static int take_own(sd_bus_message *m, void *userdata, sd_bus_error *error)
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
	r = recorder->ops->take_own(recorder->userdata, &options.scope, &options.wish,
				    &peer->caller, &id, &output);
	if (r == -EOPNOTSUPP)
		return sd_bus_error_set(
		    error, PTD_ERROR_NOT_EMULATED,
		    "the recorder records hardware, whose rings hold what "
		    "programs of all users ran: only members of the group " PTD_CONTROL_GROUP
		    " may see that");
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
	    (r = call_append_u32(reply, "objects_missing", result->n_missing)) < 0)
		return r;
	return call_send_reply(reply, 0);
}

static int wait_own(sd_bus_message *m, void *userdata, sd_bus_error *error)
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
		return no_snapshot(error, id);
	return result->done ? reply_own(m, id, result) : put_off(peer->interface, m, error);
}

void interface_own_done(struct interface *interface, const char *own_id,
			const struct own_result *result)
{
	size_t n = 0;

	for (size_t i = 0; i < interface->waiters.n; i++) {
		sd_bus_message *call = interface->waiters.items[i];
		const char *id;
		int r;

		if (sd_bus_message_rewind(call, true) >= 0 &&
		    sd_bus_message_read(call, "s", &id) >= 0 && strcmp(id, own_id) != 0) {
			interface->waiters.items[n++] = call;
			continue;
		}
		/* A client that has disconnected does not get the reply. One that waits gets some
		 * reply, even if what ptdecode said is no text for D-Bus. */
		r = reply_own(call, own_id, result);
		if (r < 0)
			(void)sd_bus_reply_method_errno(call, r, NULL);
		(void)sd_bus_message_unref(call);
	}
	interface->waiters.n = n;
}

/* --- waiting ---------------------------------------------------------------------------------- */

void interface_job_done(struct interface *interface, const struct job *job)
{
	size_t n = 0;

	for (size_t i = 0; i < interface->waiters.n; i++) {
		sd_bus_message *call = interface->waiters.items[i];
		const char *id;

		if (sd_bus_message_rewind(call, true) >= 0 &&
		    sd_bus_message_read(call, "s", &id) >= 0 && strcmp(id, job->id) != 0) {
			interface->waiters.items[n++] = call;
			continue;
		}
		/* A client that has disconnected does not get the reply. */
		(void)reply_done(call, spool_path(interface->recorder.spool), job);
		(void)sd_bus_message_unref(call);
	}
	interface->waiters.n = n;
}

bool interface_waits(const struct interface *interface, const sd_bus *bus)
{
	for (size_t i = 0; i < interface->waiters.n; i++)
		if (sd_bus_message_get_bus(interface->waiters.items[i]) == bus)
			return true;
	return false;
}

void interface_forget(struct interface *interface, const sd_bus *bus)
{
	size_t n = 0;

	for (size_t i = 0; i < interface->waiters.n; i++) {
		sd_bus_message *call = interface->waiters.items[i];

		if (sd_bus_message_get_bus(call) == bus)
			(void)sd_bus_message_unref(call);
		else
			interface->waiters.items[n++] = call;
	}
	interface->waiters.n = n;
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
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; r >= 0 && i < n; i++) {
		if ((r = sd_bus_message_open_container(reply, 'a', "{sv}")) < 0 ||
		    (r = call_append_string(reply, "id", entries[i].id)) < 0 ||
		    (r = call_append_string(reply, "created", entries[i].created)) < 0 ||
		    (r = call_append_u64(reply, "bytes", entries[i].bytes)) < 0 ||
		    (r = call_append_u32(reply, "cpus", entries[i].n_cpus)) < 0 ||
		    (r = call_append_string(reply, "command", entries[i].command)) < 0 ||
		    (r = call_append_u32(reply, "pid", entries[i].pid)) < 0 ||
		    (r = call_append_u32(reply, "objects_missing", entries[i].n_missing)) < 0 ||
		    (r = call_append_u64(reply, "records_lost", entries[i].n_records_lost)) < 0 ||
		    (r = call_append_u64(reply, "pt_dropped", entries[i].bytes_dropped)) < 0 ||
		    (r = call_append_u64(reply, "pt_overwritten", entries[i].bytes_overwritten)) <
			0 ||
		    (r = sd_bus_message_append(reply, "{sv}", "command_complete", "b",
					       !entries[i].command_cut)) < 0 ||
		    (r = sd_bus_message_append(reply, "{sv}", "kept", "b", entries[i].kept)) < 0)
			return r;
		r = sd_bus_message_close_container(reply);
	}
	return call_send_reply(reply, r);
}

/* Read the argument that names a snapshot, and get its id, which the log is to have. */
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
	       take_snapshot),
	METHOD("WaitSnapshot", "s", SD_BUS_PARAM(id), "a{sv}", SD_BUS_PARAM(result), wait_snapshot),
	METHOD("TakeOwn", "sa{sv}", SD_BUS_PARAM(format) SD_BUS_PARAM(options), "sh",
	       SD_BUS_PARAM(id) SD_BUS_PARAM(output), take_own),
	METHOD("WaitOwn", "s", SD_BUS_PARAM(id), "a{sv}", SD_BUS_PARAM(result), wait_own),
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

/* Clients that expect a bus, such as gdbus, first request a name. Any name will do. */
static int hello(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(m, "s", ":1.1");
}

static const sd_bus_vtable bus_vtable[] = {
	SD_BUS_VTABLE_START(0),
	METHOD("Hello", "", , "s", SD_BUS_PARAM(name), hello),
	SD_BUS_VTABLE_END,
};

/* Comes before all methods. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;

	return access_check(m, peer->access, error);
}

int interface_attach(sd_bus *bus, struct interface_peer *peer)
{
	int r;

	r = sd_bus_add_filter(bus, NULL, on_message, peer);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, PTD_CONTROL_OBJECT, PTD_CONTROL_INTERFACE,
					     vtable, peer);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/DBus",
					     "org.freedesktop.DBus", bus_vtable, peer);
	return r < 0 ? r : 0;
}

void interface_deinit(struct interface *interface)
{
	for (size_t i = 0; i < interface->waiters.n; i++)
		(void)sd_bus_message_unref(interface->waiters.items[i]);
	vec_deinit(&interface->waiters);
}
