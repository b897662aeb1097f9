/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * perf-judge [-d N] [-k] [-c UNCYCLED] INPUT <PERF-SCRIPT-OUTPUT: decodes INPUT and compares each
 * thread's instructions with those that `perf script -F pid,tid,ip` lists; with `-F
 * pid,tid,event,ip` samples of other events are left out. Up to N may differ in all, and times do
 * not matter then: a known defect of perf's. What is decoded must be justified
 * (tests/lib/follow.h).
 *
 * With `-F pid,tid,cpu,time,event,ip --ns` the times are compared, too. perf gives an instruction
 * the time that we give it, and a branch that a packet decides the time that we give what is behind
 * it. But where a CPU comes back to user code, perf adds an estimate to the time that packets told,
 * two cycles for each instruction since, and its time stays so until packets tell a later one; and
 * behind a CBR that changes the frequency it gives instructions the next time already. Such times
 * are counted apart.
 *
 * -c names the same input without CYC packets. Between two packets of time, cycles tell the time
 * only roughly: perf's time and ours must lie between the packets.
 *
 * -k compares kernel code for each CPU, as what thread 0.(CPU + 1) did, and wants
 * `-F pid,tid,cpu,ip`: where between the records of a switch the kernel goes from one thread to the
 * other nothing tells.
 *
 * It prints where they differ, then how many instructions were equal, only decoded here, and only
 * listed by perf, and how many times. Where neither lists any, all is well: who calls it sees to it
 * that this is not always so.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/trial.h"
#include "util/vec.h"

#define ALIKE     16   /* so many in a row: the lists have met again */
#define APART_MAX 4096 /* so many are looked at to find where */
#define SHOWN_MAX 10

/* In TSC ticks: an MTC is written up to some cycles behind the time that it tells; and perf adds so
 * much for an instruction, two of the slowest cycles. */
#define SLACK        8
#define ESTIMATE_MAX 16

struct listed {
	uint32_t pid, tid;
	VEC(uint64_t) ips;
	VEC(uint64_t) times; /* ns, as many, or none */
};

struct counts {
	uint64_t n_equal, n_ours, n_perfs;
	uint64_t n_times, n_near, n_other_times;
};

/* Where the comparison of the times of a thread is. */
struct clock {
	const struct trial_thread *ours, *uncycled; /* @uncycled may be NULL */
	const struct listed *perfs;
	uint64_t t;      /* of our last instruction */
	uint64_t n_at_t; /* instructions of that time so far, and of the time before */
	uint64_t n_at_last_t;
	uint64_t perf; /* perf's time of the last one */
	size_t later;  /* the first one of @uncycled with a later time than the last, or its end */
};

static VEC(struct listed) listed;
static unsigned n_shown;

static struct listed *listed_of(uint32_t pid, uint32_t tid)
{
	static size_t last;

	if (last < listed.n && listed.items[last].pid == pid && listed.items[last].tid == tid)
		return &listed.items[last];
	for (last = 0; last < listed.n; last++)
		if (listed.items[last].pid == pid && listed.items[last].tid == tid)
			return &listed.items[last];
	if (vec_push(&listed, { .pid = pid, .tid = tid }) < 0)
		error(2, ENOMEM, "threads");
	return &listed.items[last];
}

/* An error that the recording itself tells of. */
static bool is_error(const char *line)
{
	static const char begin[] = " instruction trace error ";

	return strncmp(line, begin, strlen(begin)) == 0;
}

/* Step over the name of an event, if there is one. Return: whether its samples are instructions. */
static bool skip_event(char **at)
{
	static const char begin[] = "instructions:";
	char *name = *at + strspn(*at, " ");
	const size_t n = strcspn(name, " \n");

	if (n == 0 || name[n - 1] != ':')
		return true;
	*at = name + n;
	return strncmp(name, begin, strlen(begin)) == 0;
}

/* Step over "[CPU]". Return: whether it is there. */
static bool read_cpu(char **at, uint32_t *ret_cpu)
{
	*at += strspn(*at, " ");
	if (**at != '[')
		return false;
	*ret_cpu = (uint32_t)strtoul(*at + 1, at, 10);
	return *(*at)++ == ']';
}

/* Step over "SECONDS.NANOSECONDS:". Return: whether it is there. */
static bool read_time(char **at, uint64_t *ret_ns)
{
	uint64_t s, ns;
	int n = 0;

	if (sscanf(*at, "%" SCNu64 ".%9" SCNu64 ":%n", &s, &ns, &n) != 2 || n == 0)
		return false;
	*at += n;
	*ret_ns = s * 1000000000 + ns;
	return true;
}

static void read_perf(FILE *f, bool kernel_of_cpus)
{
	char line[4096];

	while (fgets(line, sizeof(line), f)) {
		char *at = line, *end;
		uint32_t pid = (uint32_t)strtol(at, &at, 10);
		uint32_t tid = *at == '/' ? (uint32_t)strtol(at + 1, &at, 10) : 0;
		uint32_t cpu = 0;
		uint64_t ip, t = 0;
		struct listed *l;
		bool has_time;

		if (is_error(line))
			continue;
		if (!read_cpu(&at, &cpu) && kernel_of_cpus)
			error(2, 0, "not a line of pid/tid, cpu and ip: %s", line);
		has_time = read_time(&at, &t);
		if (!skip_event(&at))
			continue;
		ip = strtoull(at, &end, 16);
		if (end == at)
			error(2, 0, "not a line of pid/tid and ip: %s", line);
		if (kernel_of_cpus && ip >> 63)
			pid = 0, tid = cpu + 1;
		l = listed_of(pid, tid);
		if (vec_push(&l->ips, ip) < 0 || (has_time && vec_push(&l->times, t) < 0))
			error(2, ENOMEM, "instructions");
	}
}

static bool alike(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b)
{
	const size_t n = n_a < n_b ? n_a : n_b;

	return (n >= ALIKE || n_a == n_b) &&
	       memcmp(a, b, (n < ALIKE ? n : ALIKE) * sizeof(*a)) == 0;
}

/* The lists differ at their beginning: how much of each is to be left out for them to meet
 * again? */
static void meet(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b, size_t *ret_a,
		 size_t *ret_b)
{
	for (size_t apart = 1; apart <= APART_MAX; apart++) {
		for (size_t i = 0; i <= apart && i <= n_a; i++) {
			const size_t k = apart - i;

			if (k > n_b || !alike(a + i, n_a - i, b + k, n_b - k))
				continue;
			*ret_a = i;
			*ret_b = k;
			return;
		}
	}
	*ret_a = n_a;
	*ret_b = n_b;
}

static void show(uint32_t pid, uint32_t tid, uint64_t n_equal, const uint64_t *a, size_t n_a,
		 const uint64_t *b, size_t n_b)
{
	if (n_shown++ >= SHOWN_MAX)
		return;
	printf("%" PRIu32 ".%" PRIu32 ": after %" PRIu64 " equal ones, %zu only here", pid, tid,
	       n_equal, n_a);
	for (size_t i = 0; i < n_a && i < 5; i++)
		printf(" %" PRIx64, a[i]);
	printf("; %zu only of perf", n_b);
	for (size_t i = 0; i < n_b && i < 5; i++)
		printf(" %" PRIx64, b[i]);
	putchar('\n');
}

/* Return: whether @t lies between the packets of time beside instruction @i. */
static bool is_between(struct clock *c, size_t i, uint64_t t)
{
	const struct trial_time *times = c->uncycled->times.items;
	const size_t n = c->uncycled->times.n;
	uint64_t to;

	if (c->later <= i)
		c->later = i + 1;
	while (c->later < n && times[c->later - 1].next == times[i].t)
		c->later++;
	to = c->later < n ? times[c->later - 1].next : UINT64_MAX;
	if (getenv("DBG"))
		printf("%zu: %lu in %lu %lu?\n", i, t, times[i].t, to);
	return t >= times[i].t && (to == UINT64_MAX || t <= to + (to - times[i].t) / 64 + SLACK);
}

/* The same of perf's time: that of a branch may be the one of the packet that decides it. */
static bool is_between_or_next(struct clock *c, size_t i, uint64_t t)
{
	return is_between(c, i, t) || (i + 1 < c->ours->times.n && is_between(c, i + 1, t));
}

/* Return: the first time behind that of instruction @i. */
static uint64_t later_time(const struct clock *c, size_t i)
{
	const uint64_t t = c->ours->times.items[i].t;

	while (i < c->ours->times.n && c->ours->times.items[i].t <= t)
		i++;
	return i < c->ours->times.n ? c->ours->times.items[i].t : UINT64_MAX;
}

enum agreement { SAME, NEAR, OTHER };

/* What is perf's time of instruction @i, against ours? */
static enum agreement agree(struct clock *c, size_t i, uint64_t perf)
{
	const struct trial_time *ours = &c->ours->times.items[i];

	if (c->uncycled && !is_between(c, i, ours->t))
		return OTHER;
	if ((perf >= ours->t && perf <= ours->next) ||
	    (c->uncycled && is_between_or_next(c, i, perf)))
		return SAME;
	if (perf < ours->t)
		return OTHER;
	if (perf == later_time(c, i))
		return NEAR;
	return perf == c->perf || perf - ours->t <= (c->n_at_t + c->n_at_last_t) * ESTIMATE_MAX
		   ? NEAR
		   : OTHER;
}

/* Compare the times of our instruction @i and perf's @k. */
static void compare_times(struct clock *c, size_t i, size_t k, struct counts *counts)
{
	const struct trial_time *ours = &c->ours->times.items[i];
	const uint64_t perf = c->perfs->times.items[k];
	enum agreement agreement;

	if (ours->t != c->t) {
		c->n_at_last_t = c->n_at_t;
		c->n_at_t = 0;
	}
	c->n_at_t++;
	c->t = ours->t;
	agreement = agree(c, i, perf);
	c->perf = perf;
	counts->n_times++;
	counts->n_near += agreement == NEAR;
	counts->n_other_times += agreement == OTHER;
	if (agreement != OTHER || n_shown++ >= SHOWN_MAX)
		return;
	printf("%" PRIu32 ".%" PRIu32 ": instruction %zu, %" PRIx64 ", at %" PRIu64
	       " here, what is next at %" PRIu64 ", at %" PRIu64 " of perf\n",
	       c->perfs->pid, c->perfs->tid, i, c->ours->ips.items[i], ours->t, ours->next, perf);
}

static void compare(const struct trial_thread *t, const struct trial_thread *uncycled,
		    const struct listed *l, struct counts *counts)
{
	const uint64_t *a = t->ips.items, *b = l->ips.items;
	struct clock clock = { .ours = t, .perfs = l, .uncycled = uncycled };
	size_t n_a = t->ips.n, n_b = l->ips.n;
	uint64_t n = 0;

	while (n_a > 0 || n_b > 0) {
		size_t less_a = 0, less_b = 0;

		if (n_a > 0 && n_b > 0 && *a == *b) {
			if (l->times.n > 0)
				compare_times(&clock, t->ips.n - n_a, l->ips.n - n_b, counts);
			n++;
			a++, n_a--;
			b++, n_b--;
			continue;
		}
		meet(a, n_a, b, n_b, &less_a, &less_b);
		show(l->pid, l->tid, n, a, less_a, b, less_b);
		a += less_a, n_a -= less_a;
		b += less_b, n_b -= less_b;
		counts->n_ours += less_a;
		counts->n_perfs += less_b;
	}
	counts->n_equal += n;
}

/* Return: what @t did without CYC packets; NULL if they are not left out, or it differs. */
static const struct trial_thread *uncycled_of(const struct trial *uncycled,
					      const struct trial_thread *t)
{
	const struct trial_thread *same = trial_find(uncycled, t->pid, t->tid);

	return same && same->ips.n == t->ips.n &&
		       memcmp(same->ips.items, t->ips.items, t->ips.n * sizeof(*t->ips.items)) == 0
		   ? same
		   : NULL;
}

static struct counts compare_all(const struct trial *trial, const struct trial *uncycled)
{
	static const struct trial_thread nothing;
	struct counts counts = {};

	for (size_t i = 0; i < trial->threads.n; i++) {
		const struct trial_thread *t = &trial->threads.items[i];

		compare(t, uncycled_of(uncycled, t), listed_of(t->pid, t->tid), &counts);
	}
	for (size_t i = 0; i < listed.n; i++) {
		const struct listed *l = &listed.items[i];

		if (!trial_find(trial, l->pid, l->tid))
			compare(&nothing, NULL, l, &counts);
	}
	return counts;
}

static void decode(const char *input, enum trial_lists lists, struct trial *ret_trial)
{
	const struct ptd_options options = { .size = sizeof(options),
					     .force = true,
					     .all_processes = true, /* as perf lists them */
					     .input = input };
	const int r = trial_run(&options, lists, stdout, ret_trial);

	if (r < 0 || ret_trial->refusal)
		error(2, -r, "%s", ret_trial->refusal ? ret_trial->refusal : input);
}

int main(int argc, char **argv)
{
	enum trial_lists lists = TRIAL_THREADS;
	struct trial trial = {}, uncycled = {};
	const char *reference = NULL;
	uint64_t n_allowed = 0;
	struct counts counts;
	int option, r;

	while ((option = getopt(argc, argv, "c:d:k")) != -1) {
		if (option == 'c')
			reference = optarg;
		else if (option == 'd')
			n_allowed = strtoull(optarg, NULL, 10);
		else if (option == 'k')
			lists = TRIAL_KERNEL_OF_CPUS;
		else
			return 2;
	}
	if (argc - optind != 1)
		error(2, 0,
		      "usage: perf-judge [-d N] [-k] [-c UNCYCLED] INPUT <PERF-SCRIPT-OUTPUT");

	decode(argv[optind], lists, &trial);
	if (reference)
		decode(reference, lists, &uncycled);
	read_perf(stdin, lists == TRIAL_KERNEL_OF_CPUS);
	counts = compare_all(&trial, &uncycled);
	printf("%zu threads, %" PRIu64 " gaps, %" PRIu64 " instructions equal, %" PRIu64
	       " only here, %" PRIu64 " only of perf, %" PRIu64 " not justified; %" PRIu64
	       " times, %" PRIu64 " of them near, %" PRIu64 " others\n",
	       trial.threads.n, trial.n_gaps, counts.n_equal, counts.n_ours, counts.n_perfs,
	       trial.n_faults, counts.n_times, counts.n_near, counts.n_other_times);
	r = trial.n_faults > 0 || counts.n_ours + counts.n_perfs > n_allowed ||
	    (n_allowed == 0 && counts.n_other_times > 0);
	trial_deinit(&trial);
	trial_deinit(&uncycled);
	return r;
}
