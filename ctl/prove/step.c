/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/prove/step.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/vec.h"

#define THREADS_MAX 16u

extern const char __executable_start[], etext[];

struct thread {
	pid_t tid; /* 0: there is none */
	bool counts, has_begun;
	VEC(uint64_t) ips;
};

static struct thread threads[THREADS_MAX];

static struct thread *thread_of(pid_t tid)
{
	for (size_t i = 0; i < THREADS_MAX; i++) {
		if (threads[i].tid == 0)
			threads[i].tid = tid;
		if (threads[i].tid == tid)
			return &threads[i];
	}
	errx(1, "more than %u threads", THREADS_MAX);
}

/* A repeated string instruction stops the thread at each repetition, and counts as one. The stepped
 * program is this one, so that its code is here. */
static bool is_repeated(uint64_t ip)
{
	const uint8_t *code = (const uint8_t *)ip; /* of the program, if it lies there */

	return ip >= (uint64_t)__executable_start && ip < (uint64_t)etext &&
	       (*code == 0xf2 || *code == 0xf3);
}

static bool is_last(const struct thread *t, uint64_t ip)
{
	return t->ips.n > 0 && t->ips.items[t->ips.n - 1] == ip;
}

/* The thread is about to execute the instruction at @ip. */
static void note(struct thread *t, uint64_t ip)
{
	if (ip == (uint64_t)subject_begin)
		t->counts = t->has_begun = true;
	if (!t->counts || (is_last(t, ip) && is_repeated(ip)))
		return;
	if (vec_push(&t->ips, ip) < 0)
		errx(1, "no memory to note what runs");
	t->counts = ip != (uint64_t)subject_end;
}

/* Return: the signal that the thread is to have. */
static int look_at(struct thread *t, int status)
{
	const int signal = WSTOPSIG(status);
	struct user_regs_struct regs;

	if (status >> 16 != 0)
		return 0;
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
		err(1, "cannot read registers");
	if (signal == SIGTRAP) {
		note(t, regs.rip);
		return 0;
	}
	/* So does a thread stop that was made. */
	if (signal == SIGSTOP)
		return 0;
	/* The handler runs before the instruction. */
	if (t->counts && is_last(t, regs.rip))
		t->ips.n--;
	return signal;
}

/* Return: the exit status of the process @pid. */
static int follow(pid_t pid)
{
	for (;;) {
		int status;
		const pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 && errno != EINTR)
			err(1, "the program is lost");
		if (tid == pid && WIFEXITED(status))
			return WEXITSTATUS(status);
		if (tid == pid && WIFSIGNALED(status))
			errx(1, "the program was killed by signal %d", WTERMSIG(status));
		if (tid > 0 && WIFSTOPPED(status) &&
		    ptrace(PTRACE_SINGLESTEP, tid, NULL, look_at(thread_of(tid), status)) < 0 &&
		    errno != ESRCH)
			err(1, "cannot step");
	}
}

static void write_thread(const struct thread *t, const char *prefix, size_t number)
{
	char path[4096];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s.%zu", prefix, number);
	f = fopen(path, "we");
	if (!f || fwrite(t->ips.items, sizeof(uint64_t), t->ips.n, f) != t->ips.n || fclose(f) != 0)
		err(1, "%s", path);
}

void step_subject(const struct subject *subject, const char *prefix)
{
	size_t n = 0;
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			err(1, "cannot be traced");
		(void)raise(SIGSTOP);
		subject->run();
		(void)fflush(stdout);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) < 0 ||
	    ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
		err(1, "cannot trace it");
	(void)thread_of(pid);
	status = follow(pid);
	if (status != 0)
		errx(1, "the program ended with status %d", status);
	for (size_t i = 0; i < THREADS_MAX; i++)
		if (threads[i].has_begun)
			write_thread(&threads[i], prefix, n++);
}
