/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * guest [-t SECONDS] [-V] [ROUNDS]: what the kernel of a real machine does to programs. Two
 * processes, each executed anew so that its libraries lie elsewhere, take page faults, signals of
 * faults and of a timer, and wake each other; they migrate between CPUs, and ask for the time in
 * the vDSO (not with -V). It ends after so many rounds, or seconds. Each prints its process and
 * what it has computed.
 */

#define _GNU_SOURCE

#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGES   24
#define NUMBERS 600

static uint8_t *memory;
static sigjmp_buf escape;
static volatile uint64_t n_ticks;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	uint8_t *page = (uint8_t *)((uintptr_t)info->si_addr & ~(uintptr_t)4095);

	(void)signal;
	(void)context;
	if (page < memory || page >= memory + PAGES * 4096)
		siglongjmp(escape, 1);
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE) < 0)
		abort();
}

static void on_tick(int signal)
{
	(void)signal;
	n_ticks++;
}

/* Fresh pages each time: the first write to each faults twice, once with a signal. */
static uint64_t fault(void)
{
	uint64_t sum = 0;

	memory = mmap(NULL, PAGES * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	for (int i = 0; i < PAGES; i++)
		memory[i * 4096] = (uint8_t)i;
	for (int i = 0; i < PAGES; i++)
		sum += memory[i * 4096];
	munmap(memory, PAGES * 4096);
	if (sigsetjmp(escape, 1) == 0)
		*(volatile int *)(uintptr_t)8 = 1;
	return sum;
}

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint64_t compute(uint32_t seed)
{
	uint32_t numbers[NUMBERS];

	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = (seed = seed * 1103515245 + 12345) >> 8;
	qsort(numbers, NUMBERS, sizeof(numbers[0]), by_value);
	return numbers[NUMBERS / 2] + fib(12);
}

/* Time in the vDSO, unless there shall be none; it is another each time, but always takes turns. */
static void ask_time(bool vdso)
{
	struct timespec now;

	for (int i = 0; vdso && i < 10; i++)
		clock_gettime(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
}

static void move(int round)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(round / 2 % 2, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static volatile sig_atomic_t over;

static void on_over(int signal)
{
	(void)signal;
	over = 1;
}

/* One of the two: whoever has the baton works and passes it on; meanwhile the other waits or
 * works. */
static int work(bool vdso, int rounds, bool first, int from, int to)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	uint64_t sum = 0;
	char baton = 0;

	sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO },
		  NULL);
	sigaction(SIGVTALRM, &(struct sigaction){ .sa_handler = on_tick, .sa_flags = SA_RESTART },
		  NULL);
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_over }, NULL);
	setitimer(ITIMER_VIRTUAL, &often, NULL);
	for (int i = 0; !over && (rounds == 0 || i < rounds); i++) {
		move(i + first);
		sum += fault();
		ask_time(vdso);
		if (i % 2 == first && write(to, &baton, 1) != 1)
			break;
		sum += compute((uint32_t)i);
		if (i % 2 != first && read(from, &baton, 1) != 1)
			break;
	}
	printf("%d: %" PRIu64 "\n", (int)getpid(), sum);
	return 0;
}

/* Each keeps its own two ends alone, so that it learns that the other one is gone: a signal that
 * comes just before read() does not interrupt it. */
static pid_t start(const char *role, const char *vdso, int rounds, const int *in, const int *out)
{
	const pid_t pid = fork();
	char words[3][16];

	if (pid != 0)
		return pid;
	close(in[1]);
	close(out[0]);
	snprintf(words[0], sizeof(words[0]), "%d", rounds);
	snprintf(words[1], sizeof(words[1]), "%d", in[0]);
	snprintf(words[2], sizeof(words[2]), "%d", out[1]);
	execl("/proc/self/exe", "guest", role, vdso, words[0], words[1], words[2], NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	const char *vdso = "vdso";
	int rounds, seconds = 0, there[2], back[2], status, failed = 0, option;
	pid_t pids[2];

	if (argc == 6)
		return work(strcmp(argv[2], "vdso") == 0, atoi(argv[3]),
			    strcmp(argv[1], "first") == 0, atoi(argv[4]), atoi(argv[5]));
	while ((option = getopt(argc, argv, "t:V")) != -1) {
		if (option == 't')
			seconds = atoi(optarg);
		else if (option == 'V')
			vdso = "none";
		else
			return 2;
	}
	rounds = argc > optind ? atoi(argv[optind]) : 0;
	if (pipe(there) < 0 || pipe(back) < 0)
		return 1;
	pids[0] = start("first", vdso, rounds, back, there);
	pids[1] = start("second", vdso, rounds, there, back);
	if (seconds > 0) {
		sleep((unsigned)seconds);
		kill(pids[0], SIGTERM);
		kill(pids[1], SIGTERM);
	}
	close(there[0]);
	close(there[1]);
	close(back[0]);
	close(back[1]);
	for (int i = 0; i < 2; i++)
		if (pids[i] < 0 || waitpid(pids[i], &status, 0) < 0 || status != 0)
			failed = 1;
	return failed;
}
