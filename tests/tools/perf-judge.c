/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * perf-judge [-d N] [-k] INPUT <PERF-SCRIPT-OUTPUT: decodes INPUT and compares each thread's
 * instructions with those that `perf script -F pid,tid,ip` lists; with `-F pid,tid,event,ip`
 * samples of other events are left out. Up to N may differ in all: a known defect of perf's. What
 * is decoded must be justified (tests/lib/follow.h).
 *
 * -k compares kernel code for each CPU, as what thread 0.(CPU + 1) did, and wants
 * `-F pid,tid,cpu,ip`: where between the records of a switch the kernel goes from one thread to the
 * other nothing tells.
 *
 * It prints where they differ, then how many instructions were equal, only decoded here, and only
 * listed by perf. Where neither lists any, all is well: who calls it sees to it that this is not
 * always so.
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

struct listed {
	uint32_t pid, tid;
	VEC(uint64_t) ips;
};

struct counts {
	uint64_t n_equal, n_ours, n_perfs;
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

static void read_perf(FILE *f, bool kernel_of_cpus)
{
	char line[4096];

	while (fgets(line, sizeof(line), f)) {
		char *at = line, *end;
		uint32_t pid = (uint32_t)strtol(at, &at, 10);
		uint32_t tid = *at == '/' ? (uint32_t)strtol(at + 1, &at, 10) : 0;
		uint32_t cpu = 0;
		uint64_t ip;

		if (is_error(line))
			continue;
		if (kernel_of_cpus && !read_cpu(&at, &cpu))
			error(2, 0, "not a line of pid/tid, cpu and ip: %s", line);
		if (!skip_event(&at))
			continue;
		ip = strtoull(at, &end, 16);
		if (end == at)
			error(2, 0, "not a line of pid/tid and ip: %s", line);
		if (kernel_of_cpus && ip >> 63)
			pid = 0, tid = cpu + 1;
		if (vec_push(&listed_of(pid, tid)->ips, ip) < 0)
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

static void compare(uint32_t pid, uint32_t tid, const uint64_t *a, size_t n_a, const uint64_t *b,
		    size_t n_b, struct counts *counts)
{
	uint64_t n = 0;

	while (n_a > 0 || n_b > 0) {
		size_t less_a = 0, less_b = 0;

		if (n_a > 0 && n_b > 0 && *a == *b) {
			n++;
			a++, n_a--;
			b++, n_b--;
			continue;
		}
		meet(a, n_a, b, n_b, &less_a, &less_b);
		show(pid, tid, n, a, less_a, b, less_b);
		a += less_a, n_a -= less_a;
		b += less_b, n_b -= less_b;
		counts->n_ours += less_a;
		counts->n_perfs += less_b;
	}
	counts->n_equal += n;
}

static struct counts compare_all(const struct trial *trial)
{
	struct counts counts = {};

	for (size_t i = 0; i < trial->threads.n; i++) {
		const struct trial_thread *t = &trial->threads.items[i];
		const struct listed *l = listed_of(t->pid, t->tid);

		compare(t->pid, t->tid, t->ips.items, t->ips.n, l->ips.items, l->ips.n, &counts);
	}
	for (size_t i = 0; i < listed.n; i++) {
		const struct listed *l = &listed.items[i];

		if (!trial_find(trial, l->pid, l->tid))
			compare(l->pid, l->tid, NULL, 0, l->ips.items, l->ips.n, &counts);
	}
	return counts;
}

int main(int argc, char **argv)
{
	struct ptd_options options = { .size = sizeof(options), .force = true };
	enum trial_lists lists = TRIAL_THREADS;
	uint64_t n_allowed = 0;
	struct counts counts;
	struct trial trial;
	int option, r;

	while ((option = getopt(argc, argv, "d:k")) != -1) {
		if (option == 'd')
			n_allowed = strtoull(optarg, NULL, 10);
		else if (option == 'k')
			lists = TRIAL_KERNEL_OF_CPUS;
		else
			return 2;
	}
	if (argc - optind != 1)
		error(2, 0, "usage: perf-judge [-d N] [-k] INPUT <PERF-SCRIPT-OUTPUT");

	options.input = argv[optind];
	r = trial_run(&options, lists, stdout, &trial);
	if (r < 0 || trial.refusal)
		error(2, -r, "%s", trial.refusal ? trial.refusal : argv[optind]);
	read_perf(stdin, lists == TRIAL_KERNEL_OF_CPUS);
	counts = compare_all(&trial);
	printf("%zu threads, %" PRIu64 " gaps, %" PRIu64 " instructions equal, %" PRIu64
	       " only here, %" PRIu64 " only of perf, %" PRIu64 " not justified\n",
	       trial.threads.n, trial.n_gaps, counts.n_equal, counts.n_ours, counts.n_perfs,
	       trial.n_faults);
	r = trial.n_faults > 0 || counts.n_ours + counts.n_perfs > n_allowed;
	trial_deinit(&trial);
	return r;
}
