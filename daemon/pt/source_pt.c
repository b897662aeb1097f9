/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/source_pt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/helper/keeper/link.h"
#include "daemon/helper/keeper/message.h"
#include "daemon/proc/cpulist.h"
#include "daemon/proc/process.h"
#include "daemon/pt/cpus.h"
#include "daemon/pt/foreignmaps.h"
#include "daemon/pt/machinesleep.h"
#include "daemon/pt/pmu.h"
#include "daemon/pt/procscan.h"
#include "daemon/pt/rights.h"
#include "daemon/pt/taskrings.h"
#include "daemon/sideband/tasks.h"
#include "daemon/source/kept.h"
#include "daemon/source/ptclock.h"
#include "util/mutex.h"

struct source_pt {
	struct source source;
	struct cpus cpus;
	pthread_mutex_t rings; /* held while they are copied, or opened and closed */
	struct machinesleep sleep;
	char form[KEEPER_FORM_SIZE];

	int proc_fd;
	struct procscan *scan; /* that is going on */
	uint64_t n_unread;     /* processes of which the last one could not read the mappings */
	struct foreignmaps *maps;
	const char *runtime_dir; /* borrowed */
	record_put_fn put;       /* of the present step, borrowed */
	void *put_userdata;
};

static struct source_pt *pt(struct source *source)
{
	return (struct source_pt *)source;
}

bool source_pt_exists(void)
{
	return access(SOURCE_PT_DEVICE, F_OK) == 0;
}

/* --- looking after them ---------------------------------------------------------------------- */

static const struct perf_event_mmap_page *any_page(const struct source_pt *p)
{
	for (uint32_t i = 0; i < p->source.n_cpus; i++)
		if (p->cpus.items[i].state != CPU_OFFLINE && p->cpus.items[i].tasks.ring.page)
			return p->cpus.items[i].tasks.ring.page;
	return NULL;
}

static int read_conversion(struct source_pt *p)
{
	const struct perf_event_mmap_page *page = any_page(p);

	return page ? ptclock_read(page, &p->source.facts.tsc) : -ENODEV;
}

static void start_again(struct source_pt *p, const struct cpulist *online)
{
	cpus_close_all(&p->cpus);
	ptclock_log_clear(p->source.clock);
	cpus_open_all(&p->cpus, online);
	if (read_conversion(p) < 0)
		log_warning(
		    "after the suspend the kernel has no conversion of TSC to time: what is "
		    "recorded now may not be decoded");
}

static void note_clock(struct source_pt *p)
{
	const struct ptclock_sample sample = ptclock_sample();

	ptclock_log_add(p->source.clock, &sample);
}

static void look_after(struct source *source)
{
	struct source_pt *p = pt(source);
	struct cpulist online;

	note_clock(p);
	/* If a snapshot is copying, there is time enough. */
	if (cpulist_read(CPULIST_ONLINE, &online) < 0 || pthread_mutex_trylock(&p->rings) != 0)
		return;
	/* PT's registers do not outlive a suspend, nor does the relation of TSC and time. */
	if (machinesleep_happened(&p->sleep)) {
		kept_draft(p->source.kept)->suspended_ns = p->sleep.ns;
		log_notice("the machine was suspended: recording anew");
		start_again(p, &online);
	}
	cpus_look_after(&p->cpus, &online);
	(void)pthread_mutex_unlock(&p->rings);
}

static int pause_source(struct source *source, bool pause)
{
	struct source_pt *p = pt(source);
	struct cpulist online;
	int r;

	if (pause == p->cpus.paused)
		return 0;
	r = pause ? 0 : cpulist_read(CPULIST_ONLINE, &online);
	if (r < 0)
		return r;
	if (pthread_mutex_trylock(&p->rings) != 0)
		return -EBUSY;
	if (pause)
		cpus_pause(&p->cpus);
	else
		cpus_resume(&p->cpus, &online);
	(void)pthread_mutex_unlock(&p->rings);
	log_notice(pause ? "paused: Intel PT is others' until ptctl resume" : "recording again");
	return 0;
}

/* Many machines have CPUs that may come and never do: they have no ring. */
static uint32_t count_kept(const struct source_pt *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->source.n_cpus; i++)
		n += p->cpus.items[i].state == CPU_OFFLINE && cpu_has_ring(&p->cpus.items[i]);
	return n;
}

static struct source_status status(struct source *source)
{
	const struct source_pt *p = pt(source);
	const struct cpu_setup *setup = &p->cpus.setup;
	const uint32_t n_recording = cpus_count(&p->cpus, CPU_RECORDING), n_kept = count_kept(p);

	return (struct source_status){
		.n_online = source->n_cpus - cpus_count(&p->cpus, CPU_OFFLINE),
		.n_recording = n_recording,
		.n_offline = n_kept,
		.n_busy = cpus_count(&p->cpus, CPU_BUSY),
		.n_failed = cpus_count(&p->cpus, CPU_FAILED),
		.paused = p->cpus.paused,
		.is_active = n_recording > 0,
		.n_unread = p->n_unread,
		.aux_size = setup->aux_size,
		.switch_size = setup->switch_size,
		.bytes_held = (n_recording + n_kept) * (setup->aux_size + setup->switch_size),
	};
}

/* --- snapshots ------------------------------------------------------------------------------- */

static uint64_t aux_room(struct source *source, uint32_t cpu)
{
	struct source_pt *p = pt(source);

	HOLD(&p->rings);
	return p->cpus.items[cpu].pt.ring.aux_size;
}

static int hold(struct source *source, struct source_moment *ret_moment)
{
	struct source_pt *p = pt(source);
	struct ptclock_sample sample;
	uint64_t complete_until;

	(void)pthread_mutex_lock(&p->rings);
	sample = cpus_publish_heads(&p->cpus, &complete_until);
	ptclock_log_add(p->source.clock, &sample);
	*ret_moment = (struct source_moment){
		.complete_until_ns = tsc_to_ns(&p->source.facts.tsc, complete_until),
		.ns = tsc_to_ns(&p->source.facts.tsc, sample.tsc),
		.monotonic_ns = sample.monotonic_ns,
		.realtime_ns = sample.realtime_ns,
	};
	return 0;
}

static void release(struct source *source)
{
	(void)pthread_mutex_unlock(&pt(source)->rings);
}

/* Hardware records everything, all the time: there are no bookmarks for @since_ns. */
static int view(struct source *source, uint32_t cpu, uint64_t since_ns, bool exact,
		struct source_view *ret_view)
{
	struct cpu *c;

	c = &pt(source)->cpus.items[cpu];
	if (!cpu_has_ring(c)) {
		*ret_view = (struct source_view){ .end = SOURCE_END_OFFLINE };
		return 0;
	}
	if (exact)
		cpu_find_overwritten(c);
	*ret_view = cpu_view(c);
	return 0;
}

static int copy_switches(struct source *source, uint32_t cpu, uint64_t since_ns,
			 uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	struct source_pt *p = pt(source);

	if (p->cpus.items[cpu].switches.ring.page)
		return cpu_copy_switches(&p->cpus.items[cpu], ret_bytes, ret_size, ret_cut);
	*ret_bytes = NULL;
	*ret_size = 0;
	*ret_cut = false;
	return 0;
}

/* --- task records ---------------------------------------------------------------------------- */

static uint64_t records_now(void *userdata)
{
	const struct source_pt *p = userdata;

	return tsc_to_ns(&p->source.facts.tsc, __rdtsc());
}

/* What is newer than our own beginning waits for the next time: an older record of another CPU
 * might come after it. */
static int drain(struct source *source, enum source_stream stream, uint8_t **ret_bytes,
		 size_t *ret_size)
{
	struct source_pt *p = pt(source);

	int r;

	if (stream == SOURCE_TASKS) {
		r = taskrings_drain(&p->cpus, records_now(p), ret_bytes, ret_size);
		/* What was lost is noted as drained by the call that returns the record of the
		 * loss. */
		if (r == 0)
			cpus_note_drained(&p->cpus, kept_draft(p->source.kept));
		return r;
	}
	*ret_bytes = NULL;
	*ret_size = 0;
	return 0;
}

static void give_room(struct source *source)
{
	cpus_give_room(&pt(source)->cpus);
}

static int scan_put(void *userdata, const void *bytes, size_t size)
{
	const struct source_pt *p = userdata;

	return p->put(p->put_userdata, bytes, size);
}

static int scan_maps(void *userdata, uint32_t pid, uint64_t wait_ns, uint8_t **ret_bytes,
		     size_t *ret_size)
{
	const struct source_pt *p = userdata;

	return foreignmaps_get(p->maps, &p->source.facts.tsc, pid, wait_ns, ret_bytes, ret_size);
}

static void scan_again(void *userdata)
{
	const struct source_pt *p = userdata;

	foreignmaps_begin(p->maps);
}

/* Records were lost before ptd was started, and may be lost at any time, so they do not suffice. */
static int tasks(struct source *source, const struct tasks *known, uint64_t budget_ns,
		 record_put_fn put, void *userdata)
{
	struct source_pt *p = pt(source);
	const struct procscan_options options = {
		.proc_fd = p->proc_fd,
		.now = records_now,
		.maps = scan_maps,
		.put = scan_put,
		.again = scan_again,
		.userdata = p,
	};
	struct procscan_stats stats;
	int r;

	/* The kernel names each task from its beginning. @put counts what it refuses. */
	if (p->cpus.setup.parent > 0) {
		(void)tasks_write(known, tasks_time(known), put, userdata);
		return 0;
	}
	if (budget_ns == 0)
		return SOURCE_MORE;
	p->put = put;
	p->put_userdata = userdata;
	if (!p->scan)
		foreignmaps_begin(p->maps);
	r = procscan_go_on(&p->scan, &options, budget_ns, &stats);
	if (r == 0)
		p->n_unread = stats.n_unreadable;
	return r;
}

static int owner(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	/* Programs that have other rights are not recorded. */
	if (pt(source)->cpus.setup.parent > 0) {
		*ret_uid = geteuid();
		return 0;
	}
	return process_real_user_of(pid, ret_uid);
}

/* --- life ------------------------------------------------------------------------------------ */

static struct source *pt_free(struct source *source)
{
	struct source_pt *p = pt(source);

	if (!p)
		return NULL;
	cpus_deinit(&p->cpus);
	(void)ptclock_log_free(p->source.clock);
	p->source.kept = kept_free(p->source.kept);
	(void)procscan_free(p->scan);
	(void)foreignmaps_free(p->maps);
	p->proc_fd = fd_close(p->proc_fd);
	(void)pthread_mutex_destroy(&p->rings);
	free(p);
	return NULL;
}

static const struct source_ops pt_ops = {
	.status = status,
	.look_after = look_after,
	.pause = pause_source,
	.drain = drain,
	.give_room = give_room,
	.tasks = tasks,
	.owner = owner,
	.aux_room = aux_room,
	.hold = hold,
	.release = release,
	.view = view,
	.copy_switches = copy_switches,
	.free = pt_free,
};

static void warn_term(const char *message)
{
	log_warning("%s", message);
}

static int read_pmu(struct source_pt *p, const struct config *config)
{
	struct source_facts *facts = &p->source.facts;
	const char *file;
	struct pmu pmu;
	int r;

	r = pmu_read(SOURCE_PT_DEVICE, &pmu, &file);
	if (r < 0)
		return log_error_errno(r, SOURCE_PT_DEVICE "/%s: cannot be used: %m", file);
	p->cpus.setup.pmu_type = pmu.type;
	p->cpus.setup.config = pmu_config(&pmu, &config->pt, warn_term);
	p->cpus.setup.user = config->trace != CONFIG_TRACE_KERNEL;
	p->cpus.setup.kernel = config->trace != CONFIG_TRACE_USER;
	p->cpus.setup.parent = (pid_t)config->parent;
	*facts = (struct source_facts){
		.name = "pt",
		.pmu_type = pmu.type,
		.attr_config = p->cpus.setup.config,
		.mask_tsc = pmu.masks[PTTERM_TSC],
		.mask_noretcomp = pmu.masks[PTTERM_NORETCOMP],
		.mask_mtc = pmu.masks[PTTERM_MTC],
		.mask_mtc_period = pmu.masks[PTTERM_MTC_PERIOD],
		.mask_cyc = pmu.masks[PTTERM_CYC],
		.tsc_ctc_numerator = pmu.tsc_ctc_numerator,
		.tsc_ctc_denominator = pmu.tsc_ctc_denominator,
		.max_nonturbo_ratio = pmu.max_nonturbo_ratio,
		.user = p->cpus.setup.user,
		.kernel = p->cpus.setup.kernel,
		.event_trace = pmu.event_trace,
		.is_inherited = config->parent > 0,
	};
	pmu_cpuid(facts->cpuid);
	return 0;
}

/* The rings of a user who may not lock more become as large as they may be. */
static int check_rights(struct source_pt *p, uint32_t n_online)
{
	const struct cpu_setup *setup = &p->cpus.setup;
	const enum rights_of of = setup->parent > 0 ? RIGHTS_OF_CHILDREN
				  : setup->kernel   ? RIGHTS_OF_KERNEL
						    : RIGHTS_OF_USERS;
	struct rights rights;
	char message[1024];
	int r;

	rights_read(n_online, &rights);
	while (setup->parent > 0 &&
	       n_online * cpus_locked_bytes(&p->cpus) > rights_lockable(&rights) &&
	       cpus_shrink(&p->cpus))
		;
	r = rights_check(&rights, of, n_online * cpus_locked_bytes(&p->cpus), message,
			 sizeof(message));
	if (r < 0)
		log_error("cannot record hardware: %s", message);
	return r;
}

/* What the events are, and the settings that decided how large they are. */
static void write_form(struct source_pt *p, const struct config *config)
{
	const struct cpu_setup *setup = &p->cpus.setup;

	(void)snprintf(
	    p->form, sizeof(p->form),
	    "pt kept=%u.%zu type=%" PRIu32 " config=%" PRIx64 " user=%d kernel=%d cpus=%" PRIu32
	    " aux=%" PRIu64 " switch=%" PRIu64 " task=%" PRIu64,
	    KEPT_VERSION, sizeof(struct kept_state), setup->pmu_type, setup->config, setup->user,
	    setup->kernel, p->cpus.n, config->aux_size, config->switch_size, config->task_size);
}

/* Return: 0, -ENOENT if there is nothing, or negative errno. */
static int resume_kept(struct source_pt *p, struct keeperlink *link)
{
	struct keepable kept;
	int r;

	if (!keeperlink_take(link, "state", p->form, &kept))
		return -ENOENT;
	r = kept_resume(kept.fd, &p->source.kept);
	if (r < 0)
		(void)fd_close(kept.fd);
	return r;
}

/* Without these samples, the wall-clock times stated for older packets are a little off. */
static void resume_clock(struct source_pt *p, struct keeperlink *link)
{
	struct ptclock_log *log;
	struct keepable kept;

	if (!keeperlink_take(link, "clock", p->form, &kept))
		return;
	if (ptclock_log_resume(kept.fd, &log) < 0) {
		(void)fd_close(kept.fd);
		return;
	}
	(void)ptclock_log_free(p->source.clock);
	p->source.clock = log;
}

/* Go on with the rings of an earlier process, or have ours kept for a later one. If the machine was
 * suspended in between, look_after() notices. */
static int take_over(struct source_pt *p, struct keeperlink *link, const struct cpulist *online)
{
	int r;

	if (link && p->cpus.n > KEPT_CPUS_MAX) {
		log_notice("the rings of more than %u CPUs do not outlive ptd", KEPT_CPUS_MAX);
		keeperlink_drop_rest(link);
		link = NULL;
	}
	p->cpus.link = link;
	p->cpus.form = p->form;
	r = resume_kept(p, link);
	if (r == 0) {
		resume_clock(p, link);
		cpus_take_over(&p->cpus, online, kept_draft(p->source.kept));
		p->sleep.ns = kept_draft(p->source.kept)->suspended_ns;
		log_notice("took over the rings of the ptd that ran before");
	} else {
		if (r != -ENOENT)
			(void)log_warning_errno(
			    r, "cannot take over the rings of the ptd that ran before: %m");
		keeperlink_drop_rest(link);
		r = kept_new(&p->source.kept);
		if (r < 0)
			return r;
	}
	kept_draft(p->source.kept)->suspended_ns = p->sleep.ns;
	r = keeperlink_keep(link, "state", p->form,
			    &(struct keepable){ .fd = kept_fd(p->source.kept) });
	if (r < 0)
		return r;
	return keeperlink_keep(link, "clock", p->form,
			       &(struct keepable){ .fd = ptclock_log_fd(p->source.clock) });
}

static int open_cpus(struct source_pt *p, const struct cpulist *online)
{
	cpus_open_all(&p->cpus, online);
	if (cpus_count(&p->cpus, CPU_RECORDING) + cpus_count(&p->cpus, CPU_BUSY) > 0)
		return 0;
	return log_as(-EIO, "no CPU can be recorded");
}

/* A program may run on any CPU. What the user may lock in memory, another recorder may have. */
static int open_own(struct source_pt *p, const struct cpulist *online)
{
	struct cpus *cpus = &p->cpus;

	for (;;) {
		cpus_open_all(cpus, online);
		if (cpus_count(cpus, CPU_RECORDING) == cpulist_count(online))
			break;
		if (cpus_count(cpus, CPU_BUSY) > 0 || !cpus_shrink(cpus))
			return log_as(-EIO, "not all CPUs can be recorded");
		cpus_close_all(cpus);
	}
	cpus->lost = false;
	return 0;
}

static int start_recording(struct source_pt *p, const struct config *config,
			   struct keeperlink *link)
{
	struct cpulist online;
	int r;

	r = cpus_init(&p->cpus);
	p->cpus.runtime_dir = p->runtime_dir;
	p->source.n_cpus = p->cpus.n;
	p->source.records_fd = p->cpus.epoll_fd;
	if (r == 0)
		r = ptclock_log_new(&p->source.clock);
	if (r == 0)
		r = cpulist_read(CPULIST_ONLINE, &online);
	p->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && p->proc_fd < 0)
		r = -errno;
	if (r < 0)
		return log_error_errno(r, "cannot start recording hardware: %m");
	r = read_pmu(p, config);
	if (r < 0)
		return r;
	machinesleep_init(&p->sleep);
	write_form(p, config);
	r = take_over(p, link, &online);
	if (r < 0)
		return log_error_errno(r, "cannot start recording hardware: %m");
	/* Rings that were taken over count as memory that is not available. */
	if (p->cpus.setup.aux_size == 0 || p->cpus.setup.switch_size == 0)
		cpus_set_sizes(&p->cpus, config->aux_size, config->switch_size, config->task_size,
			       cpulist_count(&online));
	r = check_rights(p, cpulist_count(&online));
	if (r == 0)
		r = config->parent > 0 ? open_own(p, &online) : open_cpus(p, &online);
	if (r < 0)
		return r;
	p->source.records_room = p->cpus.setup.task_size;
	r = read_conversion(p);
	if (r < 0)
		return log_error_errno(r,
				       "the kernel cannot convert TSC to time, it does not trust "
				       "the TSC (see dmesg): nothing could be decoded: %m");
	note_clock(p);
	return 0;
}

int source_pt_new(const struct config *config, struct keeperlink *link, const char *runtime_dir,
		  struct source **ret_source)
{
	struct source_pt *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return log_error_errno(-ENOMEM, "cannot start recording hardware: %m");
	p->source.ops = &pt_ops;
	p->proc_fd = -1;
	p->runtime_dir = runtime_dir;
	(void)pthread_mutex_init(&p->rings, NULL);
	r = foreignmaps_new(runtime_dir, &p->maps);
	if (r < 0)
		(void)log_error_errno(r, "cannot start recording hardware: %m");
	else
		r = start_recording(p, config, link);
	if (r < 0) {
		(void)pt_free(&p->source);
		return r;
	}
	*ret_source = &p->source;
	return 0;
}
