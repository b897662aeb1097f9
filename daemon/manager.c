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
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/jitfile.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/kernelcode.h"
#include "daemon/listen.h"
#include "daemon/notify.h"
#include "daemon/plugin.h"
#include "daemon/record.h"
#include "daemon/scanner.h"
#include "daemon/sideband.h"
#include "daemon/snapshot.h"
#include "daemon/source.h"
#include "daemon/source_emu.h"
#include "daemon/spool.h"
#include "decoder/util/dirs.h"

#define DRAIN_US       UINT64_C(50000)
#define DRAIN_MIN_US   UINT64_C(1000)        /* of a source that says when there is something */
#define DRAIN_PART     20u                   /* of one CPU, that draining such a source may take */
#define DRAIN_GRACE_US UINT64_C(60000000)    /* for a program that was given the pool to start */
#define ROOM_RETRY     (UINT64_C(256) << 20) /* to have free before a snapshot is tried again */
#define TICK_US        UINT64_C(1000000)

struct manager {
	sd_event *event;
	sd_event_source *drain_timer;
	sd_event_source *records; /* the source has task records; NULL: it does not say so */
	sd_event_source *tick_timer;
	sd_event_source *kept; /* the keep has failures to tell of */
	uint64_t opened_us;    /* when a client was last given the source */

	struct config config; /* in use */
	int (*load_config)(struct config *ret_config, void *userdata);
	void *userdata; /* of load_config(), borrowed */
	struct notify notify;

	struct source *source;
	struct sideband *sideband;
	struct scanner *scanner; /* NULL: the source does not tell of all tasks */
	struct keep *keep;
	struct jitfiles *jitfiles;
	struct spool *spool;
	struct spool_limits limits;
	struct jobs *jobs;
	struct control *control;

	char *socket_path; /* to unlink; NULL if it is systemd's */
	char *plugin;
	char id[SPOOL_ID_MAX]; /* of the snapshot asked for last */
	uint64_t n_ids;        /* the sequence of the newest one's */
	bool said_lost;        /* records were refused, and that was logged */
};

static void say_status(struct manager *m)
{
	const struct manager_status status = manager_status(m);

	notify_status(&m->notify, &status);
}

/* --- task records ---------------------------------------------------------------------------- */

static void say_not_kept(const char *path, int error)
{
	const char *why = error == -EDQUOT    ? "the objects would take more than MaxUse="
			  : error == -ENOSPC  ? "KeepFree= would not be left, or no room is"
			  : error == -ESTALE  ? "the file there is another by now"
			  : error == -ENOEXEC ? "it is no ELF file"
					      : strerror(-error);

	log_warning("%s: cannot keep a copy of this object, snapshots will miss it: %s", path, why);
}

static void keep_mapped(struct manager *m, const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record_mmap2 mmap;
	struct object *object;
	struct record record;
	int r;

	while (record_next(&c, &record) == 0) {
		if (record_get_mmap2(&record, &mmap) < 0)
			continue;
		jitfiles_add(m->jitfiles, &mmap);
		/* It is no code: what a snapshot takes of it is told above. */
		if (tasks_is_jitdump(mmap.name))
			continue;
		r = keep_add(m->keep, &mmap, &object);
		if (r < 0)
			say_not_kept(mmap.name, r);
	}
}

/* Of a task that was there before anybody listened. */
static int on_task(void *userdata, const void *bytes, size_t size)
{
	keep_mapped(userdata, bytes, size);
	return 0;
}

static int on_kept(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct manager *m = userdata;
	const struct object *object;

	(void)source;
	(void)fd;
	(void)revents;
	while ((object = keep_next_failed(m->keep)))
		say_not_kept(object->path, object->error);
	return 0;
}

static void drain(struct manager *m)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t size;
	int r;

	r = m->source->ops->drain_tasks(m->source, &bytes, &size);
	if (r == 0) {
		keep_mapped(m, bytes, size);
		r = sideband_add(m->sideband, bytes, size);
	}
	if (m->scanner)
		scanner_check(m->scanner);
	if (r < 0 && !m->said_lost) {
		errno = -r;
		log_warning("cannot take all task records, code they tell of cannot be decoded "
			    "(SidebandMax= may be too small): %m");
		m->said_lost = true;
	}
}

static bool is_alive(uint32_t pid)
{
	return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

static int on_drain(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	/* Asked before the last records are taken, not after. */
	const bool active = m->source->ops->active(m->source);

	drain(m);
	say_status(m);
	if (m->records)
		return sd_event_source_set_enabled(m->records, SD_EVENT_ON);
	if (!active && usec > m->opened_us + DRAIN_GRACE_US)
		return 0;
	(void)sd_event_source_set_time(timer, usec + DRAIN_US);
	return sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* At once, since what is mapped may be gone soon; and soon again, unless that takes much. */
static int on_records(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct manager *m = userdata;
	const uint64_t begun = now_us();
	uint64_t pause;
	int r;

	(void)fd;
	(void)revents;
	drain(m);
	pause = DRAIN_PART * (now_us() - begun);
	pause = pause < DRAIN_MIN_US ? DRAIN_MIN_US : pause < DRAIN_US ? pause : DRAIN_US;
	r = sd_event_source_set_time_relative(m->drain_timer, pause);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->drain_timer, SD_EVENT_ONESHOT);
	if (r >= 0)
		r = sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return r;
}

static int on_tick(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	(void)usec;
	m->source->ops->tick(m->source);
	say_status(m);
	(void)sd_event_source_set_time_relative(timer, TICK_US);
	return sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static int start_draining(struct manager *m)
{
	int r;

	r = sd_event_now(m->event, CLOCK_MONOTONIC, &m->opened_us);
	if (r >= 0)
		r = sd_event_source_set_time(m->drain_timer, m->opened_us + DRAIN_US);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->drain_timer, SD_EVENT_ONESHOT);
	return r < 0 ? r : 0;
}

/* --- snapshots ------------------------------------------------------------------------------- */

/* What a job's thread needs, made in the event loop. */
struct work {
	struct snapshot_request request;
	struct spool *spool; /* borrowed, as is the next */
	struct keep *keep;
	struct spool_limits limits;

	/* Gathered. */
	struct snapshot_known known;
	struct sideband_view view;
	struct object **objects;
	struct jitfile *jitfiles;
};

static void forget_known(struct work *work)
{
	sideband_view_deinit(&work->view);
	for (size_t i = 0; i < work->known.n_objects; i++)
		(void)object_unref(work->objects[i]);
	free(work->objects);
	jitfiles_list_free(work->jitfiles, work->known.n_jitfiles);
	work->known = (struct snapshot_known){};
	work->view = (struct sideband_view){};
	work->objects = NULL;
	work->jitfiles = NULL;
}

static void work_free(struct work *work)
{
	if (work)
		forget_known(work);
	free(work);
}

/* In the job's thread. */
static int ask_known(void *userdata, struct snapshot_known *ret_known)
{
	struct job *job = userdata;
	const struct work *work = job->work;
	int r;

	r = jobs_gather(job);
	if (r == 0)
		*ret_known = work->known;
	return r;
}

/* More than once: the last time is when the rings have been copied. */
static int gather(struct job *job, void *userdata)
{
	struct work *work = job->work;
	struct manager *m = userdata;
	int r;

	forget_known(work);
	/* Whatever the PT ran through, up to the freeze, has been told of by now. */
	drain(m);
	r = sideband_view_init(m->sideband, &work->view);
	if (r == 0)
		r = keep_list(m->keep, &work->objects, &work->known.n_objects);
	if (r == 0)
		r = jitfiles_list(m->jitfiles, &work->jitfiles, &work->known.n_jitfiles);
	if (r < 0)
		return r;
	work->known.tasks = &work->view;
	work->known.objects = work->objects;
	work->known.jitfiles = work->jitfiles;
	work->known.sideband_lost = sideband_stats(m->sideband).lost;
	return 0;
}

static int prepare(struct job *job, void *userdata)
{
	struct manager *m = userdata;
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		return -ENOMEM;
	work->request = (struct snapshot_request){
		.id = job->id,
		.source = m->source,
		.keep = m->keep,
		.store_fd = spool_store_fd(m->spool),
		.scope = job->scope,
		.jit_max = m->config.jit_max,
		.mem_max = m->config.mem_max,
		.cancel = &job->cancel,
		.gather = ask_known,
		.userdata = job,
	};
	work->spool = m->spool;
	work->keep = m->keep;
	work->limits = m->limits;
	job->work = work;
	/* For the estimate, and so that there is less to do when it counts. */
	return gather(job, m);
}

/* Remove old snapshots but the newest @keep until @needed bytes can be written. This thread is the only one that links
 * to the store, so it may sweep it. */
static int make_room(const struct work *work, uint64_t needed, size_t keep, size_t *ret_n_removed)
{
	int r;

	r = spool_vacuum(work->spool, &work->limits, needed, keep, ret_n_removed);
	if (*ret_n_removed > 0)
		log_notice("removed %zu old snapshots to make room: MaxUse= or KeepFree= would not "
			   "have been kept",
			   *ret_n_removed);
	if (r == 0 && *ret_n_removed > 0)
		r = keep_sweep(work->keep);
	return r;
}

static int write_snapshot(struct job *job, const char **ret_what)
{
	struct work *work = job->work;
	_cleanup_(fd_closep) int dir = -1;
	int r;

	*ret_what = "directory";
	r = spool_begin(work->spool, job->id, &dir);
	if (r == 0)
		r = snapshot_write(&work->request, dir, &job->result, ret_what);
	if (r == 0) {
		*ret_what = "directory";
		r = spool_commit(work->spool, job->id, dir);
	}
	if (r < 0)
		spool_abort(work->spool, job->id);
	return r;
}

static int work(struct job *job)
{
	struct work *work = job->work;
	const uint64_t needed = snapshot_estimate(&work->request, &work->known);
	const char *what = "directory";
	size_t n = 0;
	int r;

	r = make_room(work, needed, 1, &n);
	if (r == 0)
		r = write_snapshot(job, &what);
	/* More was written than foreseen, or others filled the disk meanwhile. */
	if (r == -ENOSPC && make_room(work, needed + ROOM_RETRY, 0, &n) == 0 && n > 0)
		r = write_snapshot(job, &what);
	if (r == -ESRCH)
		(void)snprintf(job->message, sizeof(job->message),
			       "process %" PRIu32 " did not run as far back as the rings go",
			       job->scope.pid);
	else if (r < 0)
		(void)snprintf(job->message, sizeof(job->message),
			       "cannot write %s of snapshot %s under %s: %s", what, job->id,
			       spool_path(work->spool), strerror(-r));
	return r;
}

/* No job is running here, so nobody is linking to a copy that goes. */
static void clean_up(struct manager *m)
{
	size_t n = 0;
	int r;

	r = spool_vacuum(m->spool, &m->limits, 0, 1, &n);
	if (n > 0)
		log_notice("removed %zu old snapshots: MaxUse= or KeepFree= was reached", n);
	if (r == 0 && n > 0)
		r = keep_sweep(m->keep);
	if (r < 0) {
		errno = -r;
		log_warning("cannot remove old snapshots, ignoring: %m");
	}
}

static void finish(struct job *job, void *userdata)
{
	struct manager *m = userdata;

	work_free(job->work);
	job->work = NULL;
	if (job->error < 0) {
		log_error("%s", job->message);
	} else {
		log_notice("snapshot %s: %" PRIu64 " bytes of PT from %" PRIu32 " CPUs", job->id,
			   job->result.bytes_pt, job->result.n_cpus);
		clean_up(m);
	}
	say_status(m);
	if (m->control)
		control_job_done(m->control, job);
}

static const struct jobs_ops jobs_ops = {
	.prepare = prepare,
	.gather = gather,
	.work = work,
	.finish = finish,
};

int manager_take_snapshot(struct manager *manager, const struct scope *scope, const char **ret_id)
{
	struct timespec now;
	struct tm tm;
	char time[32];
	int r;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	(void)strftime(time, sizeof(time), "%Y%m%dT%H%M%S", &tm);
	(void)snprintf(manager->id, sizeof(manager->id), "%s.%06uZ-%" PRIu64, time,
		       (unsigned)(now.tv_nsec / 1000), manager->n_ids + 1);
	r = jobs_add(manager->jobs, manager->id, scope);
	if (r < 0)
		return r;
	manager->n_ids++;
	say_status(manager);
	*ret_id = manager->id;
	return 0;
}

/* --- for the control interface --------------------------------------------------------------- */

struct manager_status manager_status(struct manager *manager)
{
	const struct sideband_stats sideband = sideband_stats(manager->sideband);
	struct source *source = manager->source;
	const struct source_status cpus = source->ops->status(source);

	return (struct manager_status){
		.source = source->facts.name,
		.n_cpus = cpus.n_online,
		.cpus = cpus,
		.recording = source->ops->active(source),
		.sideband_bytes = sideband.bytes,
		.sideband_max = sideband.bytes_max,
		.sideband_lost = sideband.lost,
		.n_objects = keep_count(manager->keep),
		.n_pending = jobs_pending(manager->jobs),
	};
}

struct spool *manager_spool(struct manager *manager)
{
	return manager->spool;
}

const struct jobs *manager_jobs(struct manager *manager)
{
	return manager->jobs;
}

int manager_open_source(struct manager *manager, int *ret_fd, const char **ret_plugin)
{
	const int fd = source_emu_fd(manager->source);
	int r;

	if (fd < 0)
		return -EOPNOTSUPP;
	r = start_draining(manager);
	if (r < 0)
		return r;
	manager->source->ops->mark(manager->source);
	*ret_fd = fd;
	*ret_plugin = manager->plugin;
	return 0;
}

int manager_pause(struct manager *manager, bool pause)
{
	struct source *source = manager->source;
	int r;

	if (!source->ops->pause)
		return -EOPNOTSUPP;
	r = source->ops->pause(source, pause);
	say_status(manager);
	return r;
}

/* --- life ------------------------------------------------------------------------------------ */

/* The limits that were set, others by default. */
static int set_limits(struct manager *m)
{
	int r;

	r = spool_default_limits(m->spool, &m->limits);
	if (r < 0)
		return r;
	if (m->config.max_use != CONFIG_SHARE)
		m->limits.max_use = m->config.max_use;
	if (m->config.keep_free != CONFIG_SHARE)
		m->limits.keep_free = m->config.keep_free;
	return 0;
}

/* Where the snapshots' sequence goes on. */
static int find_sequence(struct manager *m)
{
	_cleanup_(freep) struct spool_entry *entries = NULL;
	size_t n;
	int r;

	r = spool_list(m->spool, &entries, &n);
	if (r == 0 && n > 0)
		m->n_ids = spool_sequence(entries[n - 1].id);
	return r;
}

static int open_spool(struct manager *m, const struct manager_options *options)
{
	int r;

	r = spool_new(options->state_dir, &m->spool);
	if (r == -EBUSY)
		return log_error_errno(r, "%s: another ptd is using this state directory",
				       options->state_dir);
	if (r == 0)
		r = set_limits(m);
	if (r == 0)
		r = find_sequence(m);
	if (r == 0)
		r = keep_new(spool_store_fd(m->spool), &m->limits, &m->keep);
	if (r < 0)
		return log_error_errno(r, "%s: cannot use this as state directory: %m",
				       options->state_dir);
	return 0;
}

static int open_control(struct manager *m, const char *runtime_dir)
{
	int fd, r;

	r = listen_control(runtime_dir, &fd, &m->socket_path);
	if (r == 0)
		r = control_new(m->event, m, fd, &m->control);
	if (r < 0)
		return log_error_errno(r, "%s/control: cannot listen there: %m", runtime_dir);
	return 0;
}

static void say_changed(const char *key, bool live)
{
	log_notice(live ? "%s= was changed" : "%s= was changed: takes effect at restart", key);
}

static void reload(struct manager *m)
{
	struct config wanted;
	int r;

	r = m->load_config(&wanted, m->userdata);
	if (r < 0) {
		log_warning("the settings stay as they are");
		return;
	}
	config_update(&m->config, &wanted, say_changed);
	r = set_limits(m);
	if (r < 0) {
		errno = -r;
		log_warning("cannot tell the size of the file system, its limits stay: %m");
		return;
	}
	keep_set_limits(m->keep, &m->limits);
	sideband_set_max(m->sideband, m->config.sideband_max);
	if (jobs_pending(m->jobs) == 0)
		clean_up(m);
	log_info("settings were read again");
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct manager *m = userdata;
	struct manager_status status;

	(void)source;
	(void)info;
	notify_reloading();
	reload(m);
	status = manager_status(m);
	notify_ready(&m->notify, &status);
	return 0;
}

static int set_up_event(struct manager *m)
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
	    (r = sd_event_add_time(m->event, &m->drain_timer, CLOCK_MONOTONIC, 0, DRAIN_US / 10,
				   on_drain, m)) < 0 ||
	    (r = sd_event_source_set_enabled(m->drain_timer, SD_EVENT_OFF)) < 0 ||
	    (r = sd_event_add_io(m->event, &m->kept, keep_fd(m->keep), EPOLLIN, on_kept, m)) < 0 ||
	    (r = jobs_new(m->event, &jobs_ops, m, &m->jobs)) < 0)
		return r;
	return 0;
}

/* Hardware has its records drained from the beginning to the end. */
static int watch_source(struct manager *m)
{
	const struct source_ops *ops = m->source->ops;
	int r = 0;

	if (ops->fd)
		r = sd_event_add_io(m->event, &m->records, ops->fd(m->source), EPOLLIN, on_records,
				    m);
	if (r >= 0 && ops->tick)
		r = sd_event_add_time_relative(m->event, &m->tick_timer, CLOCK_MONOTONIC, TICK_US,
					       TICK_US / 10, on_tick, m);
	return r < 0 ? r : 0;
}

/* PT of the kernel is of no use without its code, so say it at once. */
static int check_kernel_code(const struct source *source)
{
	_cleanup_(fd_closep) int proc_fd = -1;
	const char *why = NULL;
	int r;

	if (!source->facts.kernel)
		return 0;
	proc_fd = dirs_open(AT_FDCWD, "/proc");
	r = proc_fd < 0 ? proc_fd : kernelcode_check(proc_fd, &why);
	if (r < 0)
		log_error_errno(r, "Trace= asks for kernel code, which cannot be had: %s",
				why ? why : strerror(-r));
	return r;
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
	r = source_new(&m->config, &m->source);
	if (r == 0)
		r = check_kernel_code(m->source);
	if (r < 0)
		return r;
	r = open_spool(m, options);
	if (r < 0)
		return r;
	r = set_up_event(m);
	if (r == 0)
		r = watch_source(m);
	if (r == 0)
		r = sideband_new(options->config->sideband_max, is_alive,
				 m->source->ops->tasks != NULL, &m->sideband);
	if (r == 0 && m->source->ops->tasks)
		r = scanner_new(&(struct scanner_options){ .event = m->event,
							   .source = m->source,
							   .sideband = m->sideband,
							   .put = on_task,
							   .userdata = m },
				&m->scanner);
	if (r == 0)
		r = jitfiles_new(&m->jitfiles);
	if (r == 0)
		r = plugin_find(&m->plugin);
	if (r < 0)
		return log_error_errno(r, "cannot start: %m");
	r = open_control(m, options->runtime_dir);
	if (r < 0)
		return r;
	*ret_manager = TAKE(m);
	return 0;
}

struct manager *manager_free(struct manager *manager)
{
	if (!manager)
		return NULL;

	/* The jobs first: they use all the rest, and their clients are to hear of the end. */
	(void)jobs_free(manager->jobs);
	(void)control_free(manager->control);
	if (manager->socket_path)
		(void)unlink(manager->socket_path);
	free(manager->socket_path);
	free(manager->plugin);
	sd_event_source_disable_unref(manager->kept);
	(void)keep_free(manager->keep);
	(void)jitfiles_free(manager->jitfiles);
	(void)spool_free(manager->spool);
	(void)scanner_free(manager->scanner);
	(void)sideband_free(manager->sideband);
	sd_event_source_disable_unref(manager->records);
	if (manager->source)
		(void)manager->source->ops->free(manager->source);
	sd_event_source_disable_unref(manager->drain_timer);
	sd_event_source_disable_unref(manager->tick_timer);
	(void)sd_event_unref(manager->event);
	free(manager);
	return NULL;
}

int manager_run(struct manager *manager)
{
	const struct manager_status status = manager_status(manager);
	int r;

	log_info("ready: source %s, %" PRIu32 " CPUs with %" PRIu64
		 " KiB of PT each, snapshots in %s",
		 status.source, status.cpus.n_recording, status.cpus.aux_size / 1024,
		 spool_path(manager->spool));
	notify_ready(&manager->notify, &status);
	if (manager->scanner)
		scanner_check(manager->scanner);
	r = sd_event_loop(manager->event);
	notify_stopping(&manager->notify);
	return r < 0 ? log_error_errno(r, "the event loop failed: %m") : 0;
}
