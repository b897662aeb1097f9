/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/control/server.h"
#include "daemon/helper/keeper/link.h"
#include "daemon/intake.h"
#include "daemon/notify.h"
#include "daemon/objects/codestore.h"
#include "daemon/objects/copier.h"
#include "daemon/objects/jitfile.h"
#include "daemon/objects/objectstore.h"
#include "daemon/proc/caller.h"
#include "daemon/proc/journal.h"
#include "daemon/retention/retention.h"
#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/snapshot/kernelfiles.h"
#include "daemon/snapshotjob.h"
#include "daemon/soft/source_emu.h"
#include "daemon/source/kept.h"
#include "daemon/source/source.h"
#include "daemon/spool/spool.h"
#include "daemon/trigger/triggers.h"
#include "ptd/control.h"
#include "util/snapid.h"

#define TICK_US UINT64_C(1000000)
/* How often to look for snapshots that have become too old. */
#define EXPIRE_US (600 * TICK_US)

struct manager {
	sd_event *event;
	sd_event_source *tick_timer;
	sd_event_source *expire_timer;

	struct config config; /* in use */
	int (*load_config)(struct config *ret_config, void *userdata);
	void *userdata;          /* of load_config(), borrowed */
	const char *runtime_dir; /* borrowed */
	struct notify notify;

	struct keeperlink *keeper;
	struct source *source;
	struct spool *spool;
	struct objectstore *store;
	struct retention retention; /* which uses the store and the spool */
	bool trim_later;            /* the limits changed while a job was running */
	struct intake *intake;
	struct jobs *jobs;
	struct snapshotjob_context job_context;
	struct triggers *triggers;
	struct server *server;

	char *socket_path;    /* of the socket to unlink; NULL if systemd made it */
	char id[SNAPID_SIZE]; /* of the snapshot that was requested last */
	uint64_t n_ids;       /* sequence number in the newest snapshot's id */

	uint64_t n_taken, n_failed; /* snapshots since the start */
	_Atomic uint64_t n_removed; /* likewise; those that retention removed */
	_Atomic uint64_t snapshots_bytes;
};

static struct recorder_status get_status(void *userdata)
{
	const struct manager *m = userdata;
	const struct sideband_stats sideband = sideband_stats(intake_sideband(m->intake));
	struct source *source = m->source;
	const struct source_status cpus = source->ops->status(source);

	return (struct recorder_status){
		.source = source->facts.name,
		.n_cpus = cpus.n_online,
		.cpus = cpus,
		.recording = cpus.is_active,
		.rings_ns = source->kept ? kept_draft(source->kept)->made_ns : 0,
		.sideband_bytes = sideband.bytes,
		.sideband_max = sideband.bytes_max,
		.sideband_lost = sideband.lost + cpus.n_tasks_lost,
		.n_objects = objectstore_count(m->store),
		.n_pending = jobs_pending(m->jobs),
		.n_taken = m->n_taken,
		.n_failed = m->n_failed,
		.n_removed = m->n_removed,
	};
}

static void get_share(void *userdata, enum recorder_shared shared, struct share *ret_share)
{
	const struct manager *m = userdata;

	*ret_share = (struct share){};
	switch (shared) {
	case RECORDER_OBJECTS:
		objectstore_get_share(m->store, ret_share);
		return;
	case RECORDER_CODE:
		if (intake_code(m->intake))
			codestore_get_share(intake_code(m->intake), ret_share);
		return;
	case RECORDER_JITDUMPS:
		jitfiles_get_share(intake_jitfiles(m->intake), ret_share);
		return;
	case RECORDER_SIDEBAND:
		*ret_share = *sideband_share(intake_sideband(m->intake));
		return;
	case _RECORDER_SHARED_MAX:
		break;
	}
}

static void say_status(struct manager *m)
{
	const struct recorder_status status = get_status(m);

	notify_status(&m->notify, &status);
}

/* The intake calls this. */
static void on_drained(void *userdata)
{
	struct manager *m = userdata;

	if (jobs_are_idle(m->jobs)) {
		intake_forget(m->intake);
		intake_share_out(m->intake);
	}
	say_status(m);
}

static int on_tick(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	m->source->ops->look_after(m->source);
	keeperlink_look_after(m->keeper);
	say_status(m);
	(void)sd_event_source_set_time_relative(timer, TICK_US);
	return sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* --- snapshots ------------------------------------------------------------------------------- */

static uint64_t evict_copies(uint64_t bytes, uint64_t least, void *userdata)
{
	const struct manager *m = userdata;

	return intake_evict(m->intake, bytes, least);
}

static void say_not_removed(int r)
{
	if (r == 0)
		return;
	(void)log_warning_errno(r, "cannot remove old snapshots, ignoring: %m");
}

/* Enforce the limits after they changed. A job enforces those that it began with; while a job runs,
 * it may link to a copy that would be removed. */
static void enforce_limits(struct manager *m)
{
	m->trim_later = !jobs_are_idle(m->jobs);
	if (m->trim_later)
		return;
	say_not_removed(retention_enforce(&m->retention, false, evict_copies, m));
}

static int on_expire(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	/* A job does it when it is done. On an error, retention_expire() says what it is. */
	if (jobs_are_idle(m->jobs) && retention_has_expired(&m->retention) != 0)
		say_not_removed(retention_expire(&m->retention));
	(void)sd_event_source_set_time_relative(timer, EXPIRE_US);
	return sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static void finish_job(struct job *job, void *userdata)
{
	struct manager *m = userdata;

	if (job->error < 0) {
		m->n_failed++;
		journal_log_one(LOG_ERR, PTD_MESSAGE_FAILED, "PTD_SNAPSHOT", job->id, "%s",
				job->message);
	} else {
		m->n_taken++;
		journal_log_one(LOG_NOTICE, PTD_MESSAGE_TAKEN, "PTD_SNAPSHOT", job->id,
				"snapshot %s: %" PRIu64 " byte%s of PT from %" PRIu32 " CPU%s",
				job->id, job->result.bytes_pt, plural(job->result.bytes_pt),
				job->result.n_cpus, plural(job->result.n_cpus));
	}
	if (m->trim_later)
		enforce_limits(m);
	say_status(m);
	if (m->server)
		server_job_done(m->server, job);
}

/* Write the id of the next snapshot. */
static void write_id(struct manager *m)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	snapid_print(&now, m->n_ids + 1, m->id);
}

static int take_snapshot(void *userdata, const struct scope *scope, const struct caller *caller,
			 const char **ret_id)
{
	struct manager *m = userdata;
	int r;

	write_id(m);
	r = jobs_add(m->jobs, m->id, scope, caller);
	if (r < 0)
		return r;
	m->n_ids++;
	say_status(m);
	*ret_id = m->id;
	return 0;
}

/* The condition of a trigger holds. */
static int take_triggered(void *userdata, const struct trigger_state *trigger,
			  const struct probe_hit *hit)
{
	struct scope scope = { .trigger_tid = hit->tid,
			       .trigger_ns = hit->time_ns,
			       .command_pid = hit->pid };
	struct caller caller = { .uid = trigger->uid };
	const char *id;
	int r;

	(void)snprintf(scope.trigger, sizeof(scope.trigger), "%.*s", SCOPE_TRIGGER_SIZE - 1,
		       trigger->wish.condition);
	(void)snprintf(caller.comm, sizeof(caller.comm), "trigger %" PRIu32, trigger->id);
	r = take_snapshot(userdata, &scope, &caller, &id);
	if (r < 0)
		return log_warning_errno(r, "trigger %" PRIu32 ", %s: no snapshot: %m", trigger->id,
					 trigger->wish.condition);
	log_notice("trigger %" PRIu32 ", %s, in thread %" PRIu32 " of process %" PRIu32
		   ": snapshot %s",
		   trigger->id, trigger->wish.condition, hit->tid, hit->pid, id);
	return 0;
}

/* --- for the control interface --------------------------------------------------------------- */

static int open_pool(void *userdata, bool timing, int *ret_fd)
{
	struct manager *m = userdata;
	int fd, r;

	fd = source_emu_share(m->source, timing);
	if (fd < 0)
		return fd;
	r = intake_expect(m->intake);
	if (r == 0)
		*ret_fd = fd;
	return r;
}

static int pause_source(void *userdata, bool pause)
{
	struct manager *m = userdata;
	int r;

	r = m->source->ops->pause ? m->source->ops->pause(m->source, pause) : -EOPNOTSUPP;
	say_status(m);
	return r;
}

static int remove_snapshot(void *userdata, const char *id)
{
	const struct manager *m = userdata;
	int r;

	r = spool_remove(m->spool, id);
	/* Remove copies that only this snapshot had. If a job runs, it does that when it is
	 * done. */
	if (r == 0 && jobs_are_idle(m->jobs))
		r = objectstore_sweep(m->store);
	if (r == 0 && jobs_are_idle(m->jobs))
		r = retention_set_room(&m->retention);
	return r;
}

/* --- life ------------------------------------------------------------------------------------ */

/* Find the sequence number after which new ids continue. */
static int find_sequence(struct manager *m)
{
	_cleanup_(freep) struct spool_entry *entries = NULL;
	size_t n;
	int r;

	r = spool_list(m->spool, &entries, &n);
	if (r == 0 && n > 0)
		m->n_ids = snapid_sequence(entries[n - 1].id);
	return r;
}

static int open_spool(struct manager *m, const struct manager_options *options)
{
	int r;

	r = spool_new(options->state_dir, &m->spool);
	if (r == -EBUSY)
		return log_error_errno(r, "%s: another ptd is using this state directory",
				       options->state_dir);
	if (r == 0) {
		m->retention.spool = m->spool;
		m->retention.n_removed = &m->n_removed;
		m->retention.taken = &m->snapshots_bytes;
		r = retention_set_limits(&m->retention, &m->config);
	}
	if (r == 0)
		r = find_sequence(m);
	if (r == 0)
		r = objectstore_new(spool_store_fd(m->spool), &m->retention.limits,
				    options->runtime_dir, &m->store);
	if (r < 0)
		return log_error_errno(r, "%s: cannot use this as state directory: %m",
				       options->state_dir);
	m->retention.store = m->store;
	r = retention_set_room(&m->retention);
	return r < 0 ? log_error_errno(r, "%s: cannot measure the snapshots in it: %m",
				       options->state_dir)
		     : 0;
}

static void say_changed(const char *key, bool live)
{
	log_notice(live ? "%s= was changed" : "%s= was changed: takes effect at restart", key);
}

static int read_settings(struct manager *m)
{
	const struct spool_limits before = m->retention.limits;
	const uint64_t max_age_ns = m->retention.max_age_ns;
	struct config wanted;
	int r;

	r = m->load_config(&wanted, m->userdata);
	if (r < 0) {
		log_warning("the settings stay as they are");
		return r;
	}
	config_update(&m->config, &wanted, say_changed);
	r = retention_set_limits(&m->retention, &m->config);
	if (r < 0) {
		(void)log_warning_errno(
		    r, "cannot get the size of the file system, the limits stay: %m");
		return r;
	}
	copier_set_limits(objectstore_copier(m->store), &m->retention.limits);
	sideband_set_max(intake_sideband(m->intake), m->config.sideband_max);
	keeperlink_set_seconds(m->keeper, m->config.keep_rings);
	if (intake_code(m->intake))
		codestore_set_max(intake_code(m->intake), m->config.mem_max);
	/* A client that has the settings read again cannot have more removed by that. */
	if (m->retention.max_age_ns != max_age_ns ||
	    !spool_limits_equal(&m->retention.limits, &before))
		enforce_limits(m);
	log_info("settings were read again");
	return 0;
}

static int reload_config(void *userdata, const struct caller *caller)
{
	struct manager *m = userdata;
	struct recorder_status status;
	int r;

	caller_log(caller, CALLER_RELOADED, NULL);
	notify_reloading();
	r = read_settings(m);
	status = get_status(m);
	notify_ready(&m->notify, &status);
	return r;
}

static const struct recorder_ops recorder_ops = {
	.status = get_status,
	.get_share = get_share,
	.open_pool = open_pool,
	.pause = pause_source,
	.take_snapshot = take_snapshot,
	.remove_snapshot = remove_snapshot,
	.reload = reload_config,
};

struct recorder manager_recorder(struct manager *manager)
{
	return (struct recorder){ .ops = &recorder_ops,
				  .userdata = manager,
				  .spool = manager->spool,
				  .triggers = manager->triggers,
				  .jobs = manager->jobs };
}

static int open_control(struct manager *m, const char *runtime_dir)
{
	const struct recorder recorder = manager_recorder(m);
	int fd, r;

	r = listen_control(runtime_dir, &fd, &m->socket_path);
	if (r == 0)
		r = server_new(m->event, &recorder, fd, &m->server);
	if (r < 0)
		return log_error_errno(r, "%s/control: cannot listen there: %m", runtime_dir);
	return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct caller caller;

	caller_init(&caller, info->ssi_uid, (gid_t)-1, (pid_t)info->ssi_pid);
	/* The reason for the failure has been logged. */
	(void)!reload_config(userdata, &caller);
	return 0;
}

/* Nothing is expected on standard input but its end. */
static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	const struct manager *m = userdata;
	char byte;

	return read(fd, &byte, 1) > 0 ? 0 : sd_event_exit(m->event, 0);
}

static int set_up_event(struct manager *m, bool until_eof)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	if ((r = sd_event_new(&m->event)) < 0 || (r = sd_event_set_watchdog(m->event, true)) < 0 ||
	    (r = sd_event_add_signal(m->event, NULL, SIGHUP, on_hangup, m)) < 0 ||
	    (r = sd_event_add_signal(m->event, NULL, SIGTERM, NULL, NULL)) < 0 ||
	    (r = sd_event_add_signal(m->event, NULL, SIGINT, NULL, NULL)) < 0 ||
	    (until_eof &&
	     (r = sd_event_add_io(m->event, NULL, STDIN_FILENO, EPOLLIN, on_input, m)) < 0) ||
	    (r = jobs_new(m->event, &snapshotjob_ops, &m->job_context, &m->jobs)) < 0)
		return r;
	return 0;
}

static int make_intake(struct manager *m)
{
	return intake_new(&(struct intake_options){ .event = m->event,
						    .source = m->source,
						    .store = m->store,
						    .runtime_dir = m->runtime_dir,
						    .sideband_max = m->config.sideband_max,
						    .code_max = m->config.mem_max,
						    .drained = on_drained,
						    .userdata = m },
			  &m->intake);
}

static int start_ticking(struct manager *m)
{
	int r;

	r = sd_event_add_time_relative(m->event, &m->tick_timer, CLOCK_MONOTONIC, TICK_US,
				       TICK_US / 10, on_tick, m);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, &m->expire_timer, CLOCK_MONOTONIC, TICK_US,
					       TICK_US, on_expire, m);
	return r < 0 ? r : 0;
}

/* PT of the kernel is useless without the kernel's code, so this is checked at the start. */
static int check_kernel_code(const struct manager *m)
{
	const char *why;
	int r;

	if (!m->source->facts.kernel)
		return 0;
	r = kernelfiles_check(m->runtime_dir, &why);
	if (r == KERNELFILES_NONE)
		return log_error_errno(
		    -ENODATA,
		    "Trace= asks for kernel code, which cannot be read: %s. As a "
		    "service ptd-collector needs the drop-in that ptd.conf(5) "
		    "has under Trace=",
		    why);
	return r < 0 ? log_error_errno(r, "%s/collector: cannot be used: %m", m->runtime_dir) : 0;
}

int manager_new(const struct manager_options *options, struct manager **ret_manager)
{
	_cleanup_(manager_freep) struct manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return log_error_errno(-ENOMEM, "cannot start: %m");
	m->config = *options->config;
	m->load_config = options->load_config;
	m->userdata = options->userdata;
	m->runtime_dir = options->runtime_dir;
	r = keeperlink_new(options->runtime_dir, m->config.keep_rings, &m->keeper);
	if (r < 0)
		return log_error_errno(r, "%s/keeper: cannot be used: %m", options->runtime_dir);
	r = source_new(&m->config, m->keeper, m->runtime_dir, &m->source);
	if (r == 0)
		r = check_kernel_code(m);
	if (r < 0)
		return r;
	r = open_spool(m, options);
	if (r < 0)
		return r;
	r = set_up_event(m, options->until_eof);
	if (r == 0)
		r = make_intake(m);
	m->job_context = (struct snapshotjob_context){ .config = &m->config,
						       .source = m->source,
						       .intake = m->intake,
						       .retention = &m->retention,
						       .runtime_dir = m->runtime_dir,
						       .finish = finish_job,
						       .userdata = m };
	if (r == 0)
		r = start_ticking(m);
	if (r < 0)
		return log_error_errno(r, "cannot start: %m");
	r = triggers_new(m->event, options->state_dir, m->runtime_dir, take_triggered, m,
			 &m->triggers);
	if (r < 0)
		return log_error_errno(r, "%s/triggers: cannot read it: %m", options->state_dir);
	r = open_control(m, options->runtime_dir);
	if (r < 0)
		return r;
	keeperlink_settle(m->keeper);
	*ret_manager = TAKE(m);
	return 0;
}

struct manager *manager_free(struct manager *manager)
{
	if (!manager)
		return NULL;

	/* The jobs are freed first: they use everything else, and their clients are to get
	 * replies. */
	(void)triggers_free(manager->triggers);
	(void)jobs_free(manager->jobs);
	(void)server_free(manager->server);
	if (manager->socket_path)
		(void)unlink(manager->socket_path);
	free(manager->socket_path);
	(void)intake_free(manager->intake);
	(void)objectstore_free(manager->store);
	(void)spool_free(manager->spool);
	if (manager->source)
		(void)manager->source->ops->free(manager->source);
	(void)keeperlink_free(manager->keeper);
	sd_event_source_disable_unref(manager->tick_timer);
	sd_event_source_disable_unref(manager->expire_timer);
	(void)sd_event_unref(manager->event);
	free(manager);
	return NULL;
}

int manager_run(struct manager *manager)
{
	const struct recorder_status status = get_status(manager);
	int r;

	log_info("ready: source %s, %" PRIu32 " CPU%s with %" PRIu64
		 " KiB of PT each, snapshots in %s",
		 status.source, status.cpus.n_recording, plural(status.cpus.n_recording),
		 status.cpus.aux_size / 1024, spool_path(manager->spool));
	notify_ready(&manager->notify, &status);
	r = sd_event_loop(manager->event);
	notify_stopping(&manager->notify);
	return r < 0 ? log_error_errno(r, "the event loop failed: %m") : 0;
}
