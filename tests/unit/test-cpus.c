/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * All CPUs of a machine of our own: what the kernel answers for each of them is said here, in place
 * of daemon/pt/cpu.c.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/helper/keeper/link.h"
#include "daemon/proc/cpulist.h"
#include "daemon/proc/meminfo.h"
#include "daemon/pt/cpus.h"
#include "daemon/pt/ptusers.h"
#include "daemon/source/kept.h"
#include "tests/lib/logged.h"

#define N_CPUS 4u
#define KIB    ((size_t)1024)
#define MIB    (1024 * KIB)

/* The machine. */
static struct {
	const char *possible;
	uint64_t available; /* memory */
	struct {
		int pt, sideband;           /* what opening returns */
		size_t aux_max, switch_max; /* larger rings are not to be had */
		bool dead;                  /* its events do not run any more */
		unsigned n_opened, n_published, n_printed;
	} cpus[N_CPUS];
	uint32_t full;  /* the CPU whose ring of task records was, plus one */
	char order[64]; /* of heads and fingerprints */
	char kept[512]; /* "pt.0 tasks.0 ": what the keeper has */
} machine;

/* --- in place of daemon/pt/cpu.c -------------------------------------------------------------- */

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
	cpu->tasks.ring = (struct ring){};
}

int cpu_open_sideband(struct cpu *cpu, const struct cpu_setup *setup)
{
	const uint32_t i = cpu->number;

	if (machine.cpus[i].sideband < 0)
		return machine.cpus[i].sideband;
	if (setup->switch_size > machine.cpus[i].switch_max)
		return -EPERM;
	if (cpu->tasks.fd < 0)
		cpu->tasks.fd = eventfd(0, EFD_CLOEXEC);
	cpu->tasks.ring.page = (void *)&machine;
	return 0;
}

int cpu_open_pt(struct cpu *cpu, const struct cpu_setup *setup)
{
	const uint32_t i = cpu->number;

	if (machine.cpus[i].pt < 0) {
		if (machine.cpus[i].pt == -EBUSY)
			cpu->state = CPU_BUSY;
		return machine.cpus[i].pt;
	}
	if (setup->aux_size > machine.cpus[i].aux_max)
		return -ENOMEM;
	machine.cpus[i].n_opened++;
	cpu->state = CPU_RECORDING;
	cpu->pt.ring.aux = (void *)&machine;
	cpu->pt.ring.aux_size = setup->aux_size;
	return 0;
}

int cpu_adopt_sideband(struct cpu *cpu, const struct keepable *switches,
		       const struct keepable *tasks)
{
	assert_int_equal(switches->data_size, 128 * KIB);
	(void)close(switches->fd);
	cpu->tasks.fd = tasks->fd;
	cpu->tasks.id = 100 + cpu->number;
	cpu->tasks.ring.page = (void *)&machine;
	cpu->tasks.ring.data_size = tasks->data_size;
	return 0;
}

bool cpu_resume_tasks(struct cpu *cpu, uint64_t event_id, uint64_t tail)
{
	if (cpu->tasks.id != event_id)
		return false;
	cpu->tasks_tail = tail;
	return true;
}

int cpu_adopt_pt(struct cpu *cpu, const struct keepable *pt)
{
	(void)close(pt->fd);
	cpu->state = CPU_RECORDING;
	cpu->pt.ring.aux = (void *)&machine;
	cpu->pt.ring.aux_size = pt->aux_size;
	return 0;
}

bool cpu_may_have_missed(struct cpu *cpu)
{
	return machine.full == cpu->number + 1;
}

void cpu_give_room(struct cpu *cpu)
{
	machine.order[strlen(machine.order)] = (char)('A' + cpu->number);
}

bool cpu_is_alive(struct cpu *cpu)
{
	return !machine.cpus[cpu->number].dead;
}

bool cpu_sideband_is_alive(struct cpu *cpu)
{
	return !machine.cpus[cpu->number].dead;
}

void cpu_publish_head(struct cpu *cpu)
{
	machine.cpus[cpu->number].n_published++;
	machine.order[strlen(machine.order)] = (char)('0' + cpu->number);
}

void cpu_take_fingerprint(struct cpu *cpu)
{
	machine.cpus[cpu->number].n_printed++;
	machine.order[strlen(machine.order)] = (char)('a' + cpu->number);
}

/* --- in place of daemon/helper/keeper/link.c -------------------------------------------------- */

static char *find_kept(const char *name)
{
	char word[64];

	(void)snprintf(word, sizeof(word), "%s ", name);
	return strstr(machine.kept, word);
}

bool keeperlink_take(struct keeperlink *link, const char *name, const char *form,
		     struct keepable *ret_kept)
{
	(void)link;
	assert_string_equal(form, "form");
	if (!find_kept(name))
		return false;
	*ret_kept = (struct keepable){ .fd = eventfd(0, EFD_CLOEXEC),
				       .data_size = 128 * KIB,
				       .aux_size = 512 * KIB };
	return true;
}

void keeperlink_drop_rest(struct keeperlink *link)
{
	(void)link;
}

int keeperlink_keep(struct keeperlink *link, const char *name, const char *form,
		    const struct keepable *what)
{
	(void)what;
	if (!link)
		return 0;
	assert_string_equal(form, "form");
	if (!find_kept(name))
		(void)snprintf(machine.kept + strlen(machine.kept),
			       sizeof(machine.kept) - strlen(machine.kept), "%s ", name);
	return 0;
}

void keeperlink_drop(struct keeperlink *link, const char *name)
{
	char *at = find_kept(name);

	if (link && at)
		memmove(at, at + strlen(name) + 1, strlen(at + strlen(name) + 1) + 1);
}

uint64_t meminfo_available(void)
{
	return machine.available;
}

void ptusers_list(const char *runtime_dir, char *ret_text, size_t size)
{
	(void)runtime_dir;
	(void)snprintf(ret_text, size, "perf[123]");
}

/* The real one parses; only the file is ours. */
int cpulist_read(const char *path, struct cpulist *ret_list)
{
	assert_string_equal(path, CPULIST_POSSIBLE);
	return cpulist_parse(machine.possible, ret_list);
}

int cpulist_parse(const char *text, struct cpulist *ret_list)
{
	/* "0-3,8" is another test's: here each is named. */
	*ret_list = (struct cpulist){};
	for (; *text; text++) {
		const uint32_t i = (uint32_t)(*text - '0');

		ret_list->bits[0] |= UINT64_C(1) << i;
		ret_list->end = i + 1;
	}
	return 0;
}

/* --- tests ----------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	struct cpus *cpus = calloc(1, sizeof(*cpus));

	assert_non_null(cpus);
	machine = (__typeof__(machine)){ .possible = "0123", .available = 64 * MIB };
	for (size_t i = 0; i < N_CPUS; i++)
		machine.cpus[i].aux_max = machine.cpus[i].switch_max = SIZE_MAX;
	assert_int_equal(cpus_init(cpus), 0);
	cpus_set_sizes(cpus, MIB, 256 * KIB, MIB, N_CPUS);
	*state = cpus;
	return 0;
}

static int tear_down(void **state)
{
	cpus_deinit(*state);
	free(*state);
	return 0;
}

static struct cpulist list_of(const char *text)
{
	struct cpulist list;

	assert_int_equal(cpulist_parse(text, &list), 0);
	return list;
}

/* Open those of @online, and see that @expected is in the log; NULL: nothing is. */
static void open_all(struct cpus *cpus, const char *online, const char *expected)
{
	const struct cpulist list = list_of(online);
	const char *said;

	logged_begin();
	cpus_open_all(cpus, &list);
	said = logged_end();
	if (expected ? !strstr(said, expected) : said[0])
		fail_msg("the log is \"%s\", not \"%s\"", said, expected ? expected : "");
}

static void look_after(struct cpus *cpus, const char *online, const char *expected)
{
	const struct cpulist list = list_of(online);
	const char *said;

	logged_begin();
	cpus_look_after(cpus, &list);
	said = logged_end();
	if (expected ? !strstr(said, expected) : said[0])
		fail_msg("the log is \"%s\", not \"%s\"", said, expected ? expected : "");
}

static void assert_states(const struct cpus *cpus, const char *expected)
{
	static const char letters[] = "crobf"; /* closed, recording, offline, busy, failed */

	for (uint32_t i = 0; i < cpus->n; i++)
		assert_int_equal(letters[cpus->items[i].state], expected[i]);
}

static void sizes(void **state)
{
	static const struct {
		uint64_t available;
		size_t aux, task;
		uint32_t n_online;
		size_t expected_aux, expected_task;
	} rows[] = {
		{ 8 * MIB, MIB, MIB, 4, MIB, 256 * KIB },
		{ 8 * MIB - 1, MIB, MIB, 4, 512 * KIB, 256 * KIB },
		{ 8 * MIB, MIB, 4 * MIB, 4, MIB, MIB },
		{ 8 * MIB, MIB, 4 * MIB, 5, 512 * KIB, 512 * KIB },
		{ 8 * MIB, MIB, 64 * KIB, 4, MIB, 64 * KIB },
		{ 2, MIB, MIB, 1, 16 * KIB, MIB },
		{ 0, MIB, MIB, 1, MIB, MIB }, /* it is not known */
	};
	struct cpus *cpus = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *said;

		machine.available = rows[i].available;
		logged_begin();
		cpus_set_sizes(cpus, rows[i].aux, 7, rows[i].task, rows[i].n_online);
		said = logged_end();
		assert_int_equal(cpus->setup.aux_size, rows[i].expected_aux);
		assert_int_equal(cpus->setup.switch_size, 7);
		assert_int_equal(cpus->setup.task_size, rows[i].expected_task);
		assert_int_equal(strstr(said, "AuxSize=1024K") != NULL,
				 rows[i].expected_aux < rows[i].aux);
	}
}

static void all_at_once(void **state)
{
	struct cpus *cpus = *state;
	uint64_t complete_until;
	struct epoll_event events[8];

	assert_int_equal(cpus->n, N_CPUS);
	assert_states(cpus, "cccc");
	open_all(cpus, "013", NULL);
	assert_states(cpus, "rror");
	assert_int_equal(cpus_count(cpus, CPU_RECORDING), 3);
	assert_int_equal(cpus_count(cpus, CPU_OFFLINE), 1);
	assert_int_equal(cpus_count(cpus, CPU_BUSY), 0);
	assert_false(cpus->lost);

	/* There is something to drain as soon as one of them says so. */
	assert_int_equal(epoll_wait(cpus->epoll_fd, events, 8, 0), 0);
	assert_int_equal(eventfd_write(cpus->items[3].tasks.fd, 1), 0);
	assert_int_equal(epoll_wait(cpus->epoll_fd, events, 8, 0), 1);
	assert_int_equal(events[0].data.u32, 3);

	/* First all heads are published, then samples of the rings are taken. */
	(void)cpus_publish_heads(cpus, &complete_until);
	assert_string_equal(machine.order, "013abd");

	cpus_close_all(cpus);
	assert_true(cpus->lost);
	assert_states(cpus, "cccc");
	memset(machine.order, 0, sizeof(machine.order));
	(void)cpus_publish_heads(cpus, &complete_until);
	assert_string_equal(machine.order, "");
}

/* The ring that the first can have is that of all; and if a later one can have less, too. */
static void smaller_rings(void **state)
{
	struct cpus *cpus = *state;

	machine.cpus[0].aux_max = 512 * KIB;
	open_all(cpus, "0123", "rings of 512 KiB");
	for (size_t i = 0; i < N_CPUS; i++)
		assert_int_equal(cpus->items[i].pt.ring.aux_size, 512 * KIB);
	cpus_close_all(cpus);

	machine.cpus[2].aux_max = 64 * KIB;
	open_all(cpus, "0123", NULL); /* it was said */
	for (size_t i = 0; i < N_CPUS; i++)
		assert_int_equal(cpus->items[i].pt.ring.aux_size, 64 * KIB);
	assert_int_equal(machine.cpus[0].n_opened, 3);
	assert_int_equal(machine.cpus[3].n_opened, 2);
	cpus_close_all(cpus);

	/* Below a certain size it is given up, and the others are asked for the size as it was. */
	machine.cpus[0].aux_max = 8 * KIB;
	open_all(cpus, "0123", "CPU 0 cannot be recorded: Cannot allocate memory");
	assert_states(cpus, "frrr");
	assert_int_equal(cpus->items[0].error, -ENOMEM);
	assert_int_equal(cpus->setup.aux_size, 64 * KIB);
	cpus_close_all(cpus);

	machine.cpus[0].aux_max = SIZE_MAX;
	machine.cpus[1].switch_max = 32 * KIB;
	open_all(cpus, "0123",
		 "SwitchSize=256K: the kernel has no such ring for CPU 1: rings of 32 KiB");
	assert_int_equal(cpus->setup.switch_size, 32 * KIB);
	assert_states(cpus, "rrrr");
	cpus_close_all(cpus);
	machine.cpus[1].switch_max = 0;
	open_all(cpus, "0123", "CPU 1 cannot be recorded: Operation not permitted");
	assert_states(cpus, "rfrr");
	assert_int_equal(cpus->setup.switch_size, 32 * KIB);
}

/* Somebody else has PT: asked for again after 1, 2, 4, … ticks, without a word each time. */
static void busy(void **state)
{
	static const unsigned tries[] = { 1, 3, 7, 15, 31, 63, 123, 183, 243 };
	struct cpus *cpus = *state;
	size_t n_tries = 0;

	for (size_t i = 0; i < 3; i++)
		machine.cpus[i].pt = -EBUSY;
	open_all(cpus, "0123", "CPUs 0-2: somebody else is using Intel PT, probably perf[123]");
	assert_states(cpus, "bbbr");

	/* One that comes free shows when it was looked. */
	for (unsigned tick = 1; tick <= 250; tick++) {
		const unsigned before = machine.cpus[1].n_opened;

		machine.cpus[1].pt = 0;
		look_after(cpus, "0123", NULL);
		if (machine.cpus[1].n_opened > before) {
			assert_true(n_tries < ARRAY_LEN(tries));
			assert_int_equal(tick, tries[n_tries++]);
			assert_states(cpus, "brbr");
			cpus->items[1].state = CPU_BUSY;
		}
	}
	assert_int_equal(n_tries, ARRAY_LEN(tries));

	/* When there is another one it is said, and looked again soon. */
	machine.cpus[1].pt = machine.cpus[3].pt = -EBUSY;
	machine.cpus[3].dead = true;
	cpus->n_ticks = 251;
	look_after(cpus, "0123", "CPUs 0-3: somebody else");
	machine.cpus[3].dead = false;
	for (size_t i = 0; i < N_CPUS; i++)
		machine.cpus[i].pt = 0;
	look_after(cpus, "0123", "4 CPUs have their PT back");
	assert_states(cpus, "rrrr");
}

static void failed(void **state)
{
	struct cpus *cpus = *state;

	machine.cpus[0].pt = -EACCES;
	machine.cpus[2].pt = -EACCES;
	open_all(cpus, "0123", "CPU 2 cannot be recorded: Permission denied");
	assert_states(cpus, "frfr");
	/* The same is not said again, another reason is. */
	look_after(cpus, "0123", NULL);
	machine.cpus[0].pt = -ENOSPC;
	look_after(cpus, "0123", NULL);
	look_after(cpus, "0123", "CPU 0 cannot be recorded: No space left on device");
	machine.cpus[0].pt = 0;
	for (unsigned i = 0; i < 4; i++)
		look_after(cpus, "0123", NULL);
	assert_states(cpus, "rrfr");
}

static void hotplug(void **state)
{
	struct cpus *cpus = *state;

	open_all(cpus, "012", NULL);
	assert_states(cpus, "rrro");

	look_after(cpus, "0123", "CPU 3 is online");
	assert_states(cpus, "rrrr");
	assert_true(cpus->lost); /* what its tasks did before */
	cpus->lost = false;

	look_after(cpus, "023", "CPU 1 is offline: its last moments are kept");
	assert_states(cpus, "rorr");
	assert_true(cpu_has_ring(&cpus->items[1]));
	assert_false(cpus->lost);
	machine.cpus[1].dead = true;
	for (unsigned i = 0; i < 8; i++)
		look_after(cpus, "023", NULL); /* it is no wonder that it does not run */
	machine.cpus[1].dead = false;
	look_after(cpus, "0123", "CPU 1 is online");
	assert_states(cpus, "rrrr");
	assert_int_equal(machine.cpus[1].n_opened, 2);

	/* It went while it was being opened. */
	machine.cpus[2].pt = -ENODEV;
	cpus_close_all(cpus);
	open_all(cpus, "0123", NULL);
	assert_states(cpus, "rror");
}

/* Whose events have died is opened anew: that is looked for every fourth time. */
static void events_that_died(void **state)
{
	struct cpus *cpus = *state;

	open_all(cpus, "0123", NULL);
	machine.cpus[2].dead = true;
	for (unsigned i = 0; i < 3; i++)
		look_after(cpus, "0123", NULL);
	assert_false(cpus->lost);
	look_after(cpus, "0123", "CPU 2: recording had stopped there");
	assert_true(cpus->lost);
	assert_int_equal(machine.cpus[2].n_opened, 2);
	assert_int_equal(machine.cpus[1].n_opened, 1);

	/* Offline and online again before anybody looked. */
	cpus->lost = false;
	open_all(cpus, "0123", NULL);
	assert_true(cpus->lost);
	assert_int_equal(machine.cpus[2].n_opened, 3);
}

static void paused(void **state)
{
	const struct cpulist online = list_of("012");
	struct cpus *cpus = *state;

	open_all(cpus, "012", NULL);
	cpus_pause(cpus);
	assert_true(cpus->paused);
	assert_states(cpus, "ccco");
	assert_true(cpus->items[0].tasks.fd >= 0); /* the records beside it go on */
	for (unsigned i = 0; i < 9; i++)
		look_after(cpus, "012", NULL);
	assert_states(cpus, "ccco");
	assert_int_equal(machine.cpus[0].n_opened, 1);
	cpus_resume(cpus, &online);
	assert_states(cpus, "rrro");
	assert_int_equal(machine.cpus[0].n_opened, 2);
	assert_false(cpus->lost);
}

/* Of one CPU everything is there, of one only its sideband, of one only PT, and one is offline. */
static void takes_over_what_is_kept(void **state)
{
	static struct kept_state state_of;
	struct cpus *cpus = *state;
	const struct cpulist online = list_of("012");

	cpus->link = (void *)&machine;
	cpus->form = "form";
	(void)snprintf(machine.kept, sizeof(machine.kept),
		       "switches.0 tasks.0 pt.0 switches.1 tasks.1 pt.2 switches.3 tasks.3 pt.3 ");
	cpus_take_over(cpus, &online, &state_of);
	assert_true(cpus->lost);
	assert_states(cpus, "rcco");
	assert_int_equal(cpus->setup.aux_size, 512 * KIB);
	assert_int_equal(cpus->setup.switch_size, 128 * KIB);
	open_all(cpus, "012", NULL);
	assert_states(cpus, "rrro");
	assert_int_equal(machine.cpus[0].n_opened, 0);
	assert_int_equal(machine.cpus[1].n_opened, 1);
	assert_int_equal(machine.cpus[2].n_opened, 1);
	assert_true(cpu_has_ring(&cpus->items[3]));
	cpus->lost = false;
	cpus_give_room(cpus);
	assert_string_equal(machine.order, "ABCD");
	assert_false(cpus->lost);
	machine.full = 3;
	cpus_give_room(cpus);
	assert_true(cpus->lost);

	/* PT that is given up is nobody's, the keeper's neither. */
	cpus_pause(cpus);
	for (char name[] = "pt.0"; name[3] < '3'; name[3]++)
		assert_null(find_kept(name));
	assert_non_null(find_kept("tasks.0"));
	cpus_resume(cpus, &online);
	assert_non_null(find_kept("pt.0"));
	/* What died is kept anew. */
	machine.cpus[1].dead = true;
	for (unsigned i = 0; i < 3; i++)
		look_after(cpus, "012", NULL);
	look_after(cpus, "012", "recording had stopped there");
	assert_non_null(find_kept("pt.1"));
	cpus_close_all(cpus);
	assert_string_equal(machine.kept, "");
}

/* Task records are lost unless the rings are those of which the state was published. */
static void task_records_go_on(void **state)
{
	static const struct {
		const char *kept;
		uint64_t ids[3];
		bool lost;
	} rows[] = {
		{ "switches.0 tasks.0 switches.1 tasks.1 ", { 100, 101 }, false },
		{ "switches.0 tasks.0 switches.1 tasks.1 ", { 100, 99 }, true },
		{ "switches.0 tasks.0 switches.1 tasks.1 ", { 0, 101 }, true },
		{ "switches.0 tasks.0 tasks.1 ", { 100, 101 }, true },
		{ "switches.0 tasks.0 switches.1 tasks.1 ", { 100, 101, 102 }, true },
		{ "switches.0 tasks.0 switches.1 tasks.1 switches.2 tasks.2 ",
		  { 100, 101, 102 },
		  false },
	};
	static struct kept_state from, to;
	struct cpus *cpus = *state;
	const struct cpulist online = list_of("01");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cpus->link = (void *)&machine;
		cpus->form = "form";
		(void)snprintf(machine.kept, sizeof(machine.kept), "%s", rows[i].kept);
		for (size_t cpu = 0; cpu < 3; cpu++)
			from.drained[cpu] = (struct kept_drained){ rows[i].ids[cpu], 7 + cpu };
		cpus_take_over(cpus, &online, &from);
		assert_int_equal(cpus->lost, rows[i].lost);
		cpus_note_drained(cpus, &to);
		assert_int_equal(to.drained[0].event_id, 100);
		if (!rows[i].lost)
			assert_int_equal(to.drained[1].tail, 8);
		/* The end of a recorder closes nothing that is kept. */
		cpus_deinit(cpus);
		assert_non_null(find_kept("tasks.0"));
		assert_int_equal(cpus_init(cpus), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sizes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(smaller_rings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(busy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hotplug, set_up, tear_down),
		cmocka_unit_test_setup_teardown(events_that_died, set_up, tear_down),
		cmocka_unit_test_setup_teardown(paused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(takes_over_what_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(task_records_go_on, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
