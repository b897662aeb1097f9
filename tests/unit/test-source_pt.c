/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The hardware source over a machine of our own: what sysfs, the kernel and its CPUs answer is said
 * here, in place of daemon/pt/cpu.c, pmu.c, rights.c, machinesleep.c and cpulist.c.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <x86intrin.h>

#include "daemon/config/config.h"
#include "daemon/helper/keeper/link.h"
#include "daemon/proc/cpulist.h"
#include "daemon/proc/meminfo.h"
#include "daemon/pt/cpu.h"
#include "daemon/pt/machinesleep.h"
#include "daemon/pt/pmu.h"
#include "daemon/pt/ptusers.h"
#include "daemon/pt/rights.h"
#include "daemon/pt/source_pt.h"
#include "daemon/source/ptclock.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"

#define N_CPUS 3u

static struct {
	const char *online;
	int pt[N_CPUS]; /* what opening PT returns */
	int pmu, rights;
	bool suspended;
	enum rights_of rights_of;
	unsigned n_published, n_found;
	uint64_t rights_bytes, published_tsc;
	uint64_t lockable, aux_max; /* what may be locked, and how large a ring is had; 0: any */
} machine;

/* Of every event. */
static struct perf_event_mmap_page page;

/* --- in place of the machine ----------------------------------------------------------------- */

void cpu_init(struct cpu *cpu, uint32_t number)
{
	*cpu = (struct cpu){ .number = number };
	cpu->pt.fd = cpu->switches.fd = cpu->tasks.fd = -1;
}

void cpu_close_pt(struct cpu *cpu)
{
	cpu->pt = (struct cpu_event){ .fd = -1 };
	cpu->state = CPU_CLOSED;
}

void cpu_close(struct cpu *cpu)
{
	cpu_close_pt(cpu);
	cpu->tasks.fd = fd_close(cpu->tasks.fd);
	cpu->tasks.ring = cpu->switches.ring = (struct ring){};
}

int cpu_open_sideband(struct cpu *cpu, const struct cpu_setup *setup)
{
	(void)setup;
	if (cpu->tasks.fd < 0)
		cpu->tasks.fd = eventfd(0, EFD_CLOEXEC);
	cpu->tasks.ring.page = cpu->switches.ring.page = &page;
	return 0;
}

int cpu_open_pt(struct cpu *cpu, const struct cpu_setup *setup)
{
	int r = machine.pt[cpu->number];

	if (machine.aux_max > 0 && setup->aux_size > machine.aux_max && cpu->number > 0)
		r = -EPERM;
	cpu->state = r == -EBUSY ? CPU_BUSY : CPU_RECORDING;
	if (r < 0)
		return r;
	cpu->pt.ring.aux = (const void *)&machine;
	cpu->pt.ring.aux_size = setup->aux_size;
	cpu->gap_ns = 100 + cpu->number;
	return 0;
}

bool cpu_is_alive(struct cpu *cpu)
{
	(void)cpu;
	return true;
}

bool cpu_sideband_is_alive(struct cpu *cpu)
{
	(void)cpu;
	return true;
}

void cpu_publish_head(struct cpu *cpu)
{
	(void)cpu;
	if (machine.n_published++ == 0)
		machine.published_tsc = __rdtsc();
}

void cpu_take_fingerprint(struct cpu *cpu)
{
	(void)cpu;
}

struct source_view cpu_view(const struct cpu *cpu)
{
	return (struct source_view){ .head = 1000 + cpu->number,
				     .end = SOURCE_END_FLUSHED,
				     .overwritten = 50 + cpu->number,
				     .gap_ns = cpu->gap_ns };
}

void cpu_find_overwritten(struct cpu *cpu)
{
	(void)cpu;
	machine.n_found++;
}

int cpu_copy_switches(struct cpu *cpu, uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	*ret_bytes = NULL;
	*ret_size = 30 + cpu->number;
	*ret_cut = true;
	return 0;
}

size_t cpu_tasks_size(struct cpu *cpu)
{
	(void)cpu;
	return 0;
}

bool cpu_may_have_missed(struct cpu *cpu)
{
	(void)cpu;
	return false;
}

void cpu_give_room(struct cpu *cpu)
{
	(void)cpu;
}

int cpu_adopt_sideband(struct cpu *cpu, const struct keepable *switches,
		       const struct keepable *tasks)
{
	(void)cpu;
	(void)switches;
	(void)tasks;
	return -EINVAL;
}

bool cpu_resume_tasks(struct cpu *cpu, uint64_t event_id, uint64_t tail)
{
	(void)cpu;
	(void)event_id;
	(void)tail;
	return false;
}

int cpu_adopt_pt(struct cpu *cpu, const struct keepable *pt)
{
	(void)cpu;
	(void)pt;
	return -EINVAL;
}

size_t cpu_drain_tasks(struct cpu *cpu, uint64_t until, uint8_t *bytes)
{
	(void)cpu;
	(void)until;
	(void)bytes;
	return 0;
}

uint64_t meminfo_available(void)
{
	return UINT64_C(1) << 40;
}

void ptusers_list(const char *runtime_dir, char *ret_text, size_t size)
{
	(void)runtime_dir;
	(void)snprintf(ret_text, size, "perf[123]");
}

int cpulist_parse(const char *text, struct cpulist *ret_list)
{
	*ret_list = (struct cpulist){};
	for (; *text; text++) {
		ret_list->bits[0] |= UINT64_C(1) << (*text - '0');
		ret_list->end = (uint32_t)(*text - '0') + 1;
	}
	return 0;
}

int cpulist_read(const char *path, struct cpulist *ret_list)
{
	return cpulist_parse(strcmp(path, CPULIST_POSSIBLE) == 0 ? "012" : machine.online,
			     ret_list);
}

uint32_t cpulist_count(const struct cpulist *list)
{
	return (uint32_t)__builtin_popcountll(list->bits[0]);
}

int pmu_read(const char *path, struct pmu *ret_pmu, const char **reterr_file)
{
	assert_string_equal(path, SOURCE_PT_DEVICE);
	*ret_pmu = (struct pmu){ .type = 8,
				 .max_nonturbo_ratio = 21,
				 .tsc_ctc_numerator = 168,
				 .tsc_ctc_denominator = 2,
				 .event_trace = true };
	ret_pmu->masks[PTTERM_TSC] = 0x400;
	ret_pmu->masks[PTTERM_NORETCOMP] = 0x800;
	ret_pmu->masks[PTTERM_MTC] = 0x200;
	ret_pmu->masks[PTTERM_MTC_PERIOD] = 0x3c000;
	ret_pmu->masks[PTTERM_CYC] = 0x2;
	*reterr_file = "format/tsc";
	return machine.pmu;
}

uint64_t pmu_config(const struct pmu *pmu, const struct ptterms *terms, pmu_warn_fn warn)
{
	(void)pmu;
	(void)terms;
	warn("a term that it has not");
	return 0x2401;
}

void pmu_cpuid(char ret_cpuid[PMU_CPUID_SIZE])
{
	strcpy(ret_cpuid, "GenuineIntel,6,85,4");
}

void rights_read(uint32_t n_cpus, struct rights *ret_rights)
{
	assert_int_equal(n_cpus, strlen(machine.online));
	*ret_rights = (struct rights){};
}

uint64_t rights_lockable(const struct rights *rights)
{
	(void)rights;
	return machine.lockable > 0 ? machine.lockable : UINT64_MAX;
}

int rights_check(const struct rights *rights, enum rights_of of, uint64_t bytes,
		 char *reterr_message, size_t size)
{
	(void)rights;
	machine.rights_of = of;
	machine.rights_bytes = bytes;
	(void)snprintf(reterr_message, size, "it may not");
	return machine.rights;
}

void machinesleep_init(struct machinesleep *sleep)
{
	*sleep = (struct machinesleep){};
}

bool machinesleep_happened(struct machinesleep *sleep)
{
	(void)sleep;
	return machine.suspended;
}

/* --- tests ----------------------------------------------------------------------------------- */

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct config config;
	struct source *source;
	const char *said; /* when it was made */
	int r;
};

static void make(struct fixture *f)
{
	logged_begin();
	f->source = NULL;
	f->r = source_pt_new(&f->config, NULL, f->dir, &f->source);
	f->said = logged_end();
}

static int set_up_none(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tempdir_make("source_pt", f->dir);
	machine = (__typeof__(machine)){ .online = "012" };
	page = (struct perf_event_mmap_page){ .cap_user_time = 1,
					      .cap_user_time_zero = 1,
					      .time_shift = 4,
					      .time_mult = 3,
					      .time_zero = 1000 };
	config_init(&f->config);
	f->config.aux_size = 1 << 20;
	f->config.switch_size = 1 << 16;
	f->config.task_size = 1 << 18;
	*state = f;
	return 0;
}

static int set_up(void **state)
{
	struct fixture *f;

	(void)set_up_none(state);
	f = *state;
	make(f);
	assert_int_equal(f->r, 0);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->source)
		assert_null(f->source->ops->free(f->source));
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static void what_it_is(void **state)
{
	struct fixture *f = *state;
	const struct source_facts *facts = &f->source->facts;

	assert_non_null(strstr(f->said, "a term that it has not"));
	assert_int_equal(f->source->n_cpus, N_CPUS);
	assert_string_equal(facts->name, "pt");
	assert_string_equal(facts->cpuid, "GenuineIntel,6,85,4");
	assert_int_equal(facts->pmu_type, 8);
	assert_int_equal(facts->attr_config, 0x2401);
	assert_int_equal(facts->mask_tsc, 0x400);
	assert_int_equal(facts->mask_noretcomp, 0x800);
	assert_int_equal(facts->mask_mtc, 0x200);
	assert_int_equal(facts->mask_mtc_period, 0x3c000);
	assert_int_equal(facts->mask_cyc, 0x2);
	assert_int_equal(facts->tsc_ctc_numerator, 168);
	assert_int_equal(facts->tsc_ctc_denominator, 2);
	assert_int_equal(facts->max_nonturbo_ratio, 21);
	assert_int_equal(facts->tsc.shift, 4);
	assert_int_equal(facts->tsc.mult, 3);
	assert_int_equal(facts->tsc.zero, 1000);
	assert_true(facts->user && !facts->kernel && facts->event_trace);
	/* What it asks to lock: the rings, and the pages that control them. */
	assert_int_equal(machine.rights_bytes,
			 3 * ((1 << 20) + (1 << 16) + (1 << 16) + 4 * sysconf(_SC_PAGESIZE)));
}

static void whose_code(void **state)
{
	static const struct {
		enum config_trace trace;
		bool user, kernel;
	} rows[] = {
		{ CONFIG_TRACE_USER, true, false },
		{ CONFIG_TRACE_KERNEL, false, true },
		{ CONFIG_TRACE_ALL, true, true },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		f->config.trace = rows[i].trace;
		make(f);
		assert_int_equal(f->r, 0);
		assert_int_equal(f->source->facts.user, rows[i].user);
		assert_int_equal(f->source->facts.kernel, rows[i].kernel);
		f->source = f->source->ops->free(f->source);
	}
}

/* All CPUs, or none: the program may run on any. */
static void own_processes(void **state)
{
	static const struct {
		uint64_t lockable, aux_max;
		int pt;
		int r;
		uint64_t aux_size, switch_size;
	} rows[] = {
		{ 0, 0, 0, 0, 1 << 20, 1 << 16 },
		/* What may be locked decides; the rings of records shrink with that of PT. */
		{ 3 << 20, 0, 0, 0, 1 << 19, 1 << 16 },
		{ 3 * (516 << 10), 0, 0, 0, 1 << 18, 1 << 15 },
		{ 3 << 15, 0, 0, 0, 1 << 14, 1 << 14 }, /* rights_check() refuses that */
		/* Another recorder of the user has locked some. */
		{ 0, 1 << 18, 0, 0, 1 << 18, 1 << 16 },
		{ 0, 1 << 10, 0, -EIO, 0, 0 },
		/* Another one has PT, or it is not permitted. */
		{ 0, 0, -EBUSY, -EIO, 0, 0 },
		{ 0, 0, -EACCES, -EIO, 0, 0 },
	};
	struct fixture *f = *state;

	f->config.parent = 42;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct source_status s;
		uid_t uid;

		print_message("  row %zu\n", i);
		machine.lockable = rows[i].lockable;
		machine.aux_max = rows[i].aux_max;
		machine.pt[2] = rows[i].pt;
		make(f);
		assert_int_equal(f->r, rows[i].r);
		assert_int_equal(machine.rights_of, RIGHTS_OF_CHILDREN);
		if (f->r < 0) {
			const char *busy = strstr(f->said, "somebody else is using");

			assert_non_null(strstr(f->said, "not all CPUs can be recorded"));
			/* It asks once. */
			assert_true(!busy == (rows[i].pt != -EBUSY));
			assert_true(!busy || !strstr(busy + 1, "somebody else is using"));
			continue;
		}
		assert_true(f->source->facts.is_inherited);
		s = f->source->ops->status(f->source);
		assert_int_equal(s.n_recording, N_CPUS);
		/* Also of a process that has ended. */
		assert_int_equal(f->source->ops->owner(f->source, UINT32_MAX, &uid), 0);
		assert_int_equal(uid, geteuid());
		assert_int_equal(s.aux_size, rows[i].aux_size);
		assert_int_equal(s.switch_size, rows[i].switch_size);
		f->source = f->source->ops->free(f->source);
	}
}

static void states(void **state)
{
	struct fixture *f = *state;
	const struct source_ops *ops;
	struct source_status s;

	machine.online = "02";
	machine.pt[2] = -EBUSY;
	make(f);
	assert_int_equal(f->r, 0);
	ops = f->source->ops;
	s = ops->status(f->source);
	assert_int_equal(s.n_online, 2);
	assert_int_equal(s.n_recording, 1);
	assert_int_equal(s.n_busy, 1);
	assert_int_equal(s.n_failed, 0);
	assert_int_equal(s.n_offline, 0); /* it never came */
	assert_false(s.paused);
	assert_int_equal(s.aux_size, 1 << 20);
	assert_int_equal(s.switch_size, 1 << 16);
	assert_int_equal(ops->status(f->source).bytes_held, (1 << 20) + (1 << 16));
	assert_true(ops->status(f->source).is_active);

	/* One goes, whose rings are kept. */
	machine.pt[2] = 0;
	machine.online = "2";
	logged_begin();
	for (unsigned i = 0; i < 3; i++)
		ops->look_after(f->source);
	(void)logged_end();
	s = ops->status(f->source);
	assert_int_equal(s.n_online, 1);
	assert_int_equal(s.n_offline, 1);
	assert_int_equal(s.n_recording, 1);
	assert_int_equal(s.n_busy, 0);
	assert_int_equal(ops->status(f->source).bytes_held, 2 * ((1 << 20) + (1 << 16)));
}

/* CPU 1 is there, CPU 2 is not, and there is no CPU 3. */
static void views(void **state)
{
	struct fixture *f = *state;
	const struct source_ops *ops = f->source->ops;
	struct source_moment moment;
	struct source_view view;
	uint8_t *bytes = (uint8_t *)0x1;
	size_t size;
	bool cut;

	machine.pt[2] = -EBUSY;
	logged_begin();
	assert_int_equal(ops->pause(f->source, true), 0);
	assert_int_equal(ops->pause(f->source, false), 0);
	(void)logged_end();
	assert_int_equal(ops->hold(f->source, &moment), 0);
	assert_int_equal(machine.n_published, 2);
	assert_int_equal(ops->view(f->source, 1, 0, false, &view), 0);
	assert_int_equal(view.head, 1001);
	assert_int_equal(ops->view(f->source, 2, 0, false, &view), 0);
	assert_int_equal(view.head, 0);
	assert_int_equal(view.end, SOURCE_END_OFFLINE);

	assert_int_equal(machine.n_found, 0);
	assert_int_equal(ops->view(f->source, 1, 0, true, &view), 0);
	assert_int_equal(view.overwritten, 51);
	assert_int_equal(view.gap_ns, 101);
	assert_int_equal(ops->view(f->source, 2, 0, true, &view), 0);
	assert_int_equal(view.overwritten, 0);
	assert_int_equal(view.gap_ns, 0);
	assert_int_equal(machine.n_found, 1);

	assert_int_equal(ops->copy_switches(f->source, 1, 0, &bytes, &size, &cut), 0);
	assert_int_equal(size, 31);
	assert_true(cut);

	/* Nobody takes the rings from under a snapshot that copies them. */
	assert_int_equal(ops->pause(f->source, true), -EBUSY);
	ops->release(f->source);
	assert_int_equal(ops->aux_room(f->source, 1), 1 << 20);
	assert_int_equal(ops->aux_room(f->source, 2), 0);
}

static void moments(void **state)
{
	struct fixture *f = *state;
	const struct source_ops *ops = f->source->ops;
	struct ptclock_log *log;
	struct source_moment moment;
	struct timespec now;
	const uint64_t tsc_before = __rdtsc();
	uint64_t tsc, monotonic_ns, realtime_ns;
	char *text = NULL;
	size_t size, n = 0;
	FILE *to = open_memstream(&text, &size);

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	assert_int_equal(ops->hold(f->source, &moment), 0);
	assert_in_range(moment.monotonic_ns, (uint64_t)now.tv_sec * 1000000000,
			(uint64_t)now.tv_sec * 1000000000 + UINT64_C(20000000000));
	assert_int_equal(ptclock_log_copy(f->source->clock, &log), 0);
	ops->release(f->source);

	/* When it was made, and at the hold. */
	ptclock_log_write(log, 0, to);
	assert_int_equal(fclose(to), 0);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1, n++)
		assert_int_equal(sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &tsc,
					&monotonic_ns, &realtime_ns),
				 3);
	assert_int_equal(n, 2);
	assert_int_equal(monotonic_ns, moment.monotonic_ns);
	assert_int_equal(realtime_ns, moment.realtime_ns);
	assert_int_equal(moment.ns, 1000 + tsc * 3 / 16);
	/* Since then the rings were read, one after the other. */
	assert_in_range(moment.complete_until_ns, 1000 + tsc_before * 3 / 16,
			1000 + machine.published_tsc * 3 / 16);
	free(text);
	(void)ptclock_log_free(log);
}

static void pauses(void **state)
{
	struct fixture *f = *state;
	const struct source_ops *ops = f->source->ops;

	logged_begin();
	assert_int_equal(ops->pause(f->source, false), 0);
	assert_string_equal(logged_end(), "");
	logged_begin();
	assert_int_equal(ops->pause(f->source, true), 0);
	assert_non_null(strstr(logged_end(), "paused: Intel PT is others'"));
	assert_true(ops->status(f->source).paused);
	assert_false(ops->status(f->source).is_active);
	assert_int_equal(ops->status(f->source).bytes_held, 0);
	logged_begin();
	assert_int_equal(ops->pause(f->source, true), 0);
	assert_string_equal(logged_end(), "");
	logged_begin();
	assert_int_equal(ops->pause(f->source, false), 0);
	assert_non_null(strstr(logged_end(), "recording again"));
	assert_int_equal(ops->status(f->source).n_recording, N_CPUS);
}

/* The relation of TSC and time is another one then. */
static void suspended(void **state)
{
	struct fixture *f = *state;
	const struct source_ops *ops = f->source->ops;
	struct source_moment moment;

	/* Not while a snapshot is copying. */
	assert_int_equal(ops->hold(f->source, &moment), 0);
	machine.suspended = true;
	page.time_mult = 5;
	ops->look_after(f->source);
	assert_int_equal(f->source->facts.tsc.mult, 3);
	ops->release(f->source);

	logged_begin();
	ops->look_after(f->source);
	assert_non_null(strstr(logged_end(), "the machine was suspended: recording anew"));
	assert_int_equal(f->source->facts.tsc.mult, 5);
	assert_int_equal(ops->status(f->source).n_recording, N_CPUS);

	page.cap_user_time_zero = 0;
	logged_begin();
	ops->look_after(f->source);
	assert_non_null(strstr(logged_end(), "has no conversion of TSC to time"));
}

static void refused(void **state)
{
	struct fixture *f = *state;

	machine.pmu = -ENOENT;
	make(f);
	assert_int_equal(f->r, -ENOENT);
	assert_non_null(strstr(f->said, "intel_pt/format/tsc: cannot be used: No such file"));
	machine.pmu = 0;

	machine.rights = -EACCES;
	make(f);
	assert_int_equal(f->r, -EACCES);
	assert_non_null(strstr(f->said, "cannot record hardware: it may not"));
	machine.rights = 0;

	for (size_t i = 0; i < N_CPUS; i++)
		machine.pt[i] = -EACCES;
	make(f);
	assert_int_equal(f->r, -EIO);
	assert_non_null(strstr(f->said, "no CPU can be recorded"));
	/* If somebody else has it, it comes free one day. */
	machine.pt[1] = -EBUSY;
	make(f);
	assert_int_equal(f->r, 0);
	f->source = f->source->ops->free(f->source);
	memset(machine.pt, 0, sizeof(machine.pt));

	page.cap_user_time_zero = 0;
	make(f);
	assert_int_equal(f->r, -EOPNOTSUPP);
	assert_non_null(strstr(f->said, "the kernel cannot convert TSC to time"));
	assert_null(f->source);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_code, set_up_none, tear_down),
		cmocka_unit_test_setup_teardown(own_processes, set_up_none, tear_down),
		cmocka_unit_test_setup_teardown(states, set_up_none, tear_down),
		cmocka_unit_test_setup_teardown(views, set_up, tear_down),
		cmocka_unit_test_setup_teardown(moments, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pauses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(suspended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused, set_up_none, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
