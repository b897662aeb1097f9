/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/snapshotcalls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "daemon/control/call.h"
#include "daemon/control/interface.h"
#include "daemon/proc/cgroup.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/spool/spool.h"
#include "ptd/control.h"

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

int snapshotcalls_take(sd_bus_message *m, void *userdata, sd_bus_error *error)
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
					 "%u snapshots are waiting to be written already",
					 JOBS_WAITING_MAX);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_TOOK, id);
	return sd_bus_reply_method_return(m, "s", id);
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
	    (r = call_append_u32(reply, "objects_missing", job->result.n_missing)) < 0 ||
	    (r = call_append_u32(reply, "objects_without_room", job->result.n_without_room)) < 0)
		return r;
	return call_send_reply(reply, 0);
}

int snapshotcalls_wait(sd_bus_message *m, void *userdata, sd_bus_error *error)
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
		return call_no_snapshot(error, id);
	if (job->done)
		return reply_done(m, spool_path(interface->recorder.spool), job);
	return waiters_put_off(&interface->waiters, m, error);
}

/* What a call of WaitSnapshot is answered with. */
struct answer {
	const char *directory;
	const struct job *job;
};

static int answer_call(sd_bus_message *call, const void *userdata)
{
	const struct answer *answer = userdata;

	return reply_done(call, answer->directory, answer->job);
}

void snapshotcalls_done(struct interface *interface, const struct job *job)
{
	const struct answer answer = { spool_path(interface->recorder.spool), job };

	waiters_answer(&interface->waiters, job->id, answer_call, &answer);
}

static int append_snapshot(sd_bus_message *reply, const struct spool_entry *e)
{
	int r;

	if ((r = sd_bus_message_open_container(reply, 'a', "{sv}")) < 0 ||
	    (r = call_append_string(reply, "id", e->id)) < 0 ||
	    (r = call_append_string(reply, "created", e->created)) < 0 ||
	    (r = call_append_u64(reply, "bytes", e->bytes)) < 0 ||
	    (r = call_append_u32(reply, "cpus", e->n_cpus)) < 0 ||
	    (r = call_append_string(reply, "command", e->command)) < 0 ||
	    (r = call_append_u32(reply, "pid", e->pid)) < 0 ||
	    (r = call_append_u32(reply, "objects_missing", e->n_missing)) < 0 ||
	    (r = call_append_u64(reply, "records_lost", e->n_records_lost)) < 0 ||
	    (r = call_append_u64(reply, "pt_dropped", e->bytes_dropped)) < 0 ||
	    (r = call_append_u64(reply, "pt_overwritten", e->bytes_overwritten)) < 0 ||
	    (r = sd_bus_message_append(reply, "{sv}", "command_complete", "b", !e->command_cut)) <
		0 ||
	    (r = sd_bus_message_append(reply, "{sv}", "kept", "b", e->kept)) < 0)
		return r;
	return sd_bus_message_close_container(reply);
}

int snapshotcalls_list(sd_bus_message *m, void *userdata, sd_bus_error *error)
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
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = append_snapshot(reply, &entries[i]);
	return call_send_reply(reply, r);
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
		return call_no_snapshot(error, name);
	return r < 0 ? sd_bus_error_set_errno(error, r) : 0;
}

int snapshotcalls_open(sd_bus_message *m, void *userdata, sd_bus_error *error)
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
		return call_no_snapshot(error, id);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, CALLER_READ, id);
	return sd_bus_reply_method_return(m, "h", fd);
}

int snapshotcalls_remove(sd_bus_message *m, void *userdata, sd_bus_error *error)
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
		return call_no_snapshot(error, id);
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

int snapshotcalls_keep(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct interface_peer *peer = userdata;
	const struct recorder *recorder = &peer->interface->recorder;
	char id[SNAPID_SIZE];
	int keep, r;

	r = read_id(m, peer, id, error);
	if (r == 0)
		r = sd_bus_message_read(m, "b", &keep);
	if (r < 0)
		return r;
	r = recorder->ops->keep_snapshot(recorder->userdata, id, keep);
	if (r == -ENOENT)
		return call_no_snapshot(error, id);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	caller_log(&peer->caller, keep ? CALLER_KEPT : CALLER_RELEASED, id);
	return sd_bus_reply_method_return(m, "");
}
