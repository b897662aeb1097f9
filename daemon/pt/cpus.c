/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/cpus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <x86intrin.h>

#include "base/log.h"
#include "daemon/helper/keeper/link.h"
#include "daemon/helper/keeper/message.h"
#include "daemon/proc/cpulist.h"
#include "daemon/proc/journal.h"
#include "daemon/proc/meminfo.h"
#include "daemon/pt/ptusers.h"
#include "daemon/source/kept.h"
#include "ptd/control.h"

#define TASK_SIZE_MIN     ((size_t)64 << 10) /* of one CPU */
#define RING_SIZE_MIN     ((size_t)16 << 10) /* smaller ones are of no use */
#define LIVENESS_TICKS    4u
#define DESCRIPTORS_OTHER 1024u /* clients, objects, files */
#define RETRY_MAX         60u   /* ticks, between attempts to get PT from somebody else */

/* --- life ------------------------------------------------------------------------------------ */

/* Besides those that are open otherwise; if it is not allowed, opening events will say so. */
static void allow_descriptors(rlim_t n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n + DESCRIPTORS_OTHER)
		return;
	limit.rlim_cur =
	    limit.rlim_max < n + DESCRIPTORS_OTHER ? limit.rlim_max : n + DESCRIPTORS_OTHER;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int cpus_init(struct cpus *cpus)
{
	struct cpulist possible;
	int r;

	*cpus = (struct cpus){ .epoll_fd = -1 };
	r = cpulist_read(CPULIST_POSSIBLE, &possible);
	if (r < 0)
		return r;
	cpus->items = calloc(possible.end, sizeof(*cpus->items));
	if (!cpus->items)
		return -ENOMEM;
	cpus->n = possible.end;
	for (uint32_t i = 0; i < cpus->n; i++)
		cpu_init(&cpus->items[i], i);
	allow_descriptors(3 * cpus->n);
	cpus->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return cpus->epoll_fd < 0 ? -errno : 0;
}

/* --- what the keeper has ---------------------------------------------------------------------- */

static const char *event_name(const char *what, const struct cpu *cpu,
			      char name[static KEEPER_NAME_SIZE])
{
	(void)snprintf(name, KEEPER_NAME_SIZE, "%s.%" PRIu32, what, cpu->number);
	return name;
}

static int keep_event(const struct cpus *c, const char *what, const struct cpu *cpu,
		      const struct cpu_event *event)
{
	char name[KEEPER_NAME_SIZE];

	return keeperlink_keep(c->link, event_name(what, cpu, name), c->form,
			       &(struct keepable){ .fd = event->fd,
						   .data_size = event->ring.data_size,
						   .aux_size = event->ring.aux_size });
}

static void drop_event(const struct cpus *c, const char *what, const struct cpu *cpu)
{
	char name[KEEPER_NAME_SIZE];

	keeperlink_drop(c->link, event_name(what, cpu, name));
}

/* The keeper has it no more when we close it, so the kernel ends the event. */
static void close_pt(const struct cpus *c, struct cpu *cpu)
{
	drop_event(c, "pt", cpu);
	cpu_close_pt(cpu);
}

static void close_cpu(const struct cpus *c, struct cpu *cpu)
{
	drop_event(c, "switches", cpu);
	drop_event(c, "tasks", cpu);
	close_pt(c, cpu);
	cpu_close(cpu);
}

static bool take_event(const struct cpus *c, const char *what, const struct cpu *cpu,
		       struct keepable *ret_kept)
{
	char name[KEEPER_NAME_SIZE];

	*ret_kept = (struct keepable){ .fd = -1 };
	return keeperlink_take(c->link, event_name(what, cpu, name), c->form, ret_kept);
}

void cpus_close_all(struct cpus *cpus)
{
	cpus->lost = true;
	for (uint32_t i = 0; i < cpus->n; i++)
		close_cpu(cpus, &cpus->items[i]);
}

void cpus_deinit(struct cpus *cpus)
{
	for (uint32_t i = 0; i < cpus->n; i++)
		cpu_close(&cpus->items[i]);
	free(cpus->items);
	cpus->epoll_fd = fd_close(cpus->epoll_fd);
}

/* The rings cannot be swapped out: what is left must do for all others. */
static void limit_rings(struct cpus *c, uint32_t n_online)
{
	const uint64_t most = meminfo_available() / 2;
	const size_t wanted = c->setup.aux_size;

	while (most > 0 && c->setup.aux_size > RING_SIZE_MIN && n_online * c->setup.aux_size > most)
		c->setup.aux_size /= 2;
	if (c->setup.aux_size < wanted)
		log_warning("AuxSize=%zuK: the rings of %" PRIu32
			    " CPUs would take more than half of the "
			    "memory that is available: rings of %zu KiB",
			    wanted / 1024, n_online, c->setup.aux_size / 1024);
}

/* TaskSize= is for all CPUs together. */
void cpus_set_sizes(struct cpus *c, size_t aux_size, size_t switch_size, size_t task_size,
		    uint32_t n_online)
{
	c->setup.aux_size = aux_size;
	c->setup.switch_size = switch_size;
	c->setup.task_size = task_size;
	while (c->setup.task_size > TASK_SIZE_MIN && c->setup.task_size * n_online > task_size)
		c->setup.task_size /= 2;
	limit_rings(c, n_online);
}

/* Task records are drained, and switch records take less room than the PT between them. */
bool cpus_shrink(struct cpus *cpus)
{
	struct cpu_setup *setup = &cpus->setup;
	size_t *size = &setup->aux_size;

	if (setup->task_size > RING_SIZE_MIN && setup->task_size > setup->aux_size / 32)
		size = &setup->task_size;
	else if (setup->switch_size > RING_SIZE_MIN && setup->switch_size > setup->aux_size / 16)
		size = &setup->switch_size;
	if (*size <= RING_SIZE_MIN)
		return false;
	*size /= 2;
	return true;
}

uint64_t cpus_locked_bytes(const struct cpus *cpus)
{
	const struct cpu_setup *setup = &cpus->setup;

	/* With three control pages, and one for the records of the PT event. */
	return setup->aux_size + setup->switch_size + setup->task_size +
	       4 * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* --- opening -------------------------------------------------------------------------------- */

/* "0-3,8" of those in @state. */
static void list_cpus(const struct cpus *c, enum cpu_state state, char *ret_text, size_t size)
{
	size_t n = 0;

	ret_text[0] = 0;
	for (uint32_t i = 0; i < c->n && n < size; i++) {
		uint32_t last = i;

		if (c->items[i].state != state)
			continue;
		while (last + 1 < c->n && c->items[last + 1].state == state)
			last++;
		n += (size_t)snprintf(ret_text + n, size - n, "%s%" PRIu32, n ? "," : "", i);
		if (last > i && n < size)
			n += (size_t)snprintf(ret_text + n, size - n, "-%" PRIu32, last);
		i = last;
	}
}

static int watch(struct cpus *c, const struct cpu *cpu)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = cpu->number };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, cpu->tasks.fd, &event) < 0 && errno != EEXIST
		   ? -errno
		   : 0;
}

static int take_sideband(struct cpus *c, struct cpu *cpu)
{
	struct keepable switches, tasks;
	int r;

	if (!take_event(c, "switches", cpu, &switches) || !take_event(c, "tasks", cpu, &tasks)) {
		(void)fd_close(switches.fd);
		return -ENOENT;
	}
	r = cpu_adopt_sideband(cpu, &switches, &tasks);
	if (r == 0) {
		c->setup.switch_size = switches.data_size;
		c->setup.task_size = tasks.data_size;
		r = watch(c, cpu);
	}
	if (r == 0)
		r = keep_event(c, "switches", cpu, &cpu->switches);
	return r < 0 ? r : keep_event(c, "tasks", cpu, &cpu->tasks);
}

static int take_pt(struct cpus *c, struct cpu *cpu)
{
	struct keepable kept;
	int r;

	if (!take_event(c, "pt", cpu, &kept))
		return -ENOENT;
	r = cpu_adopt_pt(cpu, &kept);
	if (r < 0)
		return r;
	c->setup.aux_size = kept.aux_size;
	return keep_event(c, "pt", cpu, &cpu->pt);
}

void cpus_take_over(struct cpus *cpus, const struct cpulist *online, const struct kept_state *state)
{
	for (uint32_t i = 0; i < cpus->n; i++) {
		const struct kept_drained *drained = &state->drained[i];
		const bool is_online = cpulist_has(online, i);
		struct cpu *cpu = &cpus->items[i];

		if (take_sideband(cpus, cpu) < 0) {
			cpus->lost = cpus->lost || is_online || drained->event_id != 0;
			continue;
		}
		if (!cpu_resume_tasks(cpu, drained->event_id, drained->tail))
			cpus->lost = true;
		if (take_pt(cpus, cpu) == 0 && !is_online)
			cpu->state = CPU_OFFLINE;
	}
	keeperlink_drop_rest(cpus->link);
}

void cpus_note_drained(const struct cpus *cpus, struct kept_state *state)
{
	for (uint32_t i = 0; i < cpus->n && i < KEPT_CPUS_MAX; i++) {
		const struct cpu *cpu = &cpus->items[i];

		state->drained[i] =
		    (struct kept_drained){ .event_id = cpu->tasks.id, .tail = cpu->tasks_tail };
	}
}

static bool too_large(int r)
{
	return r == -ENOMEM || r == -EPERM;
}

/* The first CPU shows how large the rings can be. The others get the same size. */
static int open_pt(struct cpus *c, struct cpu *cpu)
{
	const size_t wanted = c->setup.aux_size;
	int r;

	drop_event(c, "pt", cpu);
	while (too_large(r = cpu_open_pt(cpu, &c->setup)) && c->setup.aux_size > RING_SIZE_MIN)
		c->setup.aux_size /= 2;
	if (r < 0) {
		c->setup.aux_size = wanted;
		return r;
	}
	if (c->setup.aux_size < wanted && !c->said_smaller) {
		log_warning(
		    "AuxSize=%zuK: the kernel has no such ring for CPU %" PRIu32
		    " (memory is short or in pieces, or may not be locked): rings of %zu KiB",
		    wanted / 1024, cpu->number, c->setup.aux_size / 1024);
		c->said_smaller = true;
	}
	return keep_event(c, "pt", cpu, &cpu->pt);
}

static int open_sideband(struct cpus *c, struct cpu *cpu)
{
	const size_t wanted = c->setup.switch_size;
	int r;

	if (cpu->tasks.ring.page)
		return 0;
	while (too_large(r = cpu_open_sideband(cpu, &c->setup)) &&
	       c->setup.switch_size > RING_SIZE_MIN)
		c->setup.switch_size /= 2;
	if (r < 0) {
		c->setup.switch_size = wanted;
		return r;
	}
	if (c->setup.switch_size < wanted)
		log_warning("SwitchSize=%zuK: the kernel has no such ring for CPU %" PRIu32
			    ": rings of %zu KiB",
			    wanted / 1024, cpu->number, c->setup.switch_size / 1024);
	r = watch(c, cpu);
	if (r == 0)
		r = keep_event(c, "switches", cpu, &cpu->switches);
	return r < 0 ? r : keep_event(c, "tasks", cpu, &cpu->tasks);
}

/* If it was offline, and online again before anybody looked, nothing comes from there any more. */
static void close_dead(struct cpus *c, struct cpu *cpu)
{
	if (!cpu->tasks.ring.page || cpu_sideband_is_alive(cpu))
		return;
	c->lost = true;
	close_cpu(c, cpu);
}

/* Whatever comes out is the CPU's state. */
static void open_cpu(struct cpus *c, struct cpu *cpu)
{
	const int before = cpu->error; /* was said */
	int r;

	close_dead(c, cpu);
	r = open_sideband(c, cpu);
	if (r == 0 && !c->paused)
		r = open_pt(c, cpu);
	if (r == -ENODEV) {
		close_cpu(c, cpu);
		cpu->state = CPU_OFFLINE;
	} else if (r < 0 && r != -EBUSY) {
		if (r != before) {
			errno = -r;
			journal_log(LOG_WARNING, PTD_MESSAGE_CPU, NULL, 0,
				    "CPU %" PRIu32 " cannot be recorded: %m", cpu->number);
		}
		cpu->state = CPU_FAILED;
		cpu->error = r;
	}
}

/* Records of what its tasks did until now are lost. */
static void reopen_cpu(struct cpus *c, struct cpu *cpu)
{
	c->lost = true;
	close_cpu(c, cpu);
	open_cpu(c, cpu);
}

uint32_t cpus_count(const struct cpus *c, enum cpu_state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += c->items[i].state == state;
	return n;
}

static void say_busy(const struct cpus *c)
{
	char list[256], users[512];

	list_cpus(c, CPU_BUSY, list, sizeof(list));
	ptusers_list(c->runtime_dir, users, sizeof(users));
	journal_log_one(
	    LOG_WARNING, PTD_MESSAGE_CPU, "PTD_CPUS", list,
	    "CPUs %s: somebody else is using Intel PT, probably %s: trying again now and then",
	    list, users);
}

static void retry_soon(struct cpus *c)
{
	c->retry_after = 1;
	c->retry_at = c->n_ticks + 1;
}

void cpus_open_all(struct cpus *c, const struct cpulist *online)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct cpu *cpu = &c->items[i];

		if (!cpulist_has(online, i)) {
			cpu->state = CPU_OFFLINE;
			continue;
		}
		if (cpu->state == CPU_RECORDING)
			close_dead(c, cpu);
		if (cpu->state != CPU_RECORDING)
			open_cpu(c, cpu);
	}
	/* If one got a smaller ring than those before it, memory is short: they do with that,
	 * too. */
	for (uint32_t i = 0; i < c->n; i++)
		if (c->items[i].state == CPU_RECORDING &&
		    c->items[i].pt.ring.aux_size > c->setup.aux_size)
			open_cpu(c, &c->items[i]);
	if (cpus_count(c, CPU_BUSY) > 0)
		say_busy(c);
	retry_soon(c);
}

static void look_for_hotplug(struct cpus *c, const struct cpulist *online)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct cpu *cpu = &c->items[i];
		const bool is_online = cpulist_has(online, i);

		if (is_online == (cpu->state != CPU_OFFLINE))
			continue;
		if (is_online) {
			log_notice("CPU %" PRIu32 " is online", i);
			reopen_cpu(c, cpu);
			continue;
		}
		log_notice("CPU %" PRIu32
			   " is offline: its last moments are kept until it is online "
			   "again",
			   i);
		cpu->state = CPU_OFFLINE;
	}
}

/* Nothing says so when the kernel does not run an event any more. */
static void look_for_dead(struct cpus *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct cpu *cpu = &c->items[i];

		if (cpu->state == CPU_OFFLINE || cpu_is_alive(cpu))
			continue;
		journal_log(LOG_WARNING, PTD_MESSAGE_CPU, NULL, 0,
			    "CPU %" PRIu32 ": recording had stopped there: starting it again, what "
			    "its rings held is lost",
			    i);
		reopen_cpu(c, cpu);
	}
}

static void retry(struct cpus *c)
{
	const uint32_t n_busy = cpus_count(c, CPU_BUSY), n = n_busy + cpus_count(c, CPU_FAILED);

	if (n == 0 || c->n_ticks < c->retry_at)
		return;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->items[i].state == CPU_BUSY || c->items[i].state == CPU_FAILED)
			open_cpu(c, &c->items[i]);
	if (n_busy > 0 && cpus_count(c, CPU_BUSY) == 0)
		log_notice("%" PRIu32 " CPUs have their PT back", n_busy);
	c->retry_after = 2 * c->retry_after < RETRY_MAX ? 2 * c->retry_after : RETRY_MAX;
	c->retry_at = c->n_ticks + c->retry_after;
}

void cpus_look_after(struct cpus *cpus, const struct cpulist *online)
{
	const uint32_t n_busy = cpus_count(cpus, CPU_BUSY);

	cpus->n_ticks++;
	look_for_hotplug(cpus, online);
	if (cpus->n_ticks % LIVENESS_TICKS == 0)
		look_for_dead(cpus);
	if (cpus_count(cpus, CPU_BUSY) > n_busy) {
		say_busy(cpus);
		retry_soon(cpus);
	}
	retry(cpus);
}

/* Each CPU's PT stops for a moment: all in one pass, and what can wait after it. */
struct ptclock_sample cpus_publish_heads(struct cpus *cpus, uint64_t *ret_complete_until)
{
	struct ptclock_sample sample;

	*ret_complete_until = __rdtsc();
	for (uint32_t i = 0; i < cpus->n; i++)
		if (cpu_has_ring(&cpus->items[i]))
			cpu_publish_head(&cpus->items[i]);
	sample = ptclock_sample();
	for (uint32_t i = 0; i < cpus->n; i++)
		if (cpu_has_ring(&cpus->items[i]))
			cpu_take_fingerprint(&cpus->items[i]);
	return sample;
}

void cpus_pause(struct cpus *cpus)
{
	cpus->paused = true;
	for (uint32_t i = 0; i < cpus->n; i++)
		if (cpus->items[i].state != CPU_OFFLINE)
			close_pt(cpus, &cpus->items[i]);
}

void cpus_give_room(struct cpus *cpus)
{
	for (uint32_t i = 0; i < cpus->n; i++) {
		cpus->lost = cpu_may_have_missed(&cpus->items[i]) || cpus->lost;
		cpu_give_room(&cpus->items[i]);
	}
}

void cpus_resume(struct cpus *cpus, const struct cpulist *online)
{
	cpus->paused = false;
	cpus_open_all(cpus, online);
}
