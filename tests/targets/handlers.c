/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that checks what 1000 signal handlers find, and what they leave behind: the stack is
 * aligned as the ABI says, the context is that of the interrupted code, a backtrace goes through
 * the frame, and the interrupted code has its registers and its signal mask again. It prints what
 * was wrong.
 */

#define _GNU_SOURCE
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define N_EACH 125

#ifdef __x86_64__
#define SP REG_RSP
#else
#define SP REG_ESP
#endif

static volatile unsigned n_handlers, n_misaligned, n_wrong;
static volatile sig_atomic_t in_main, ticks;
static char stack[64 * 1024];
static sigjmp_buf escape;

static void wrong(const char *what)
{
	if (n_wrong++ == 0)
		printf("wrong: %s\n", what);
}

/* The address above a return address is a multiple of 16, but not for the compiler to conclude. */
static void check_stack(uintptr_t frame)
{
	__asm__ volatile("" : "+r"(frame));
	n_handlers++;
	if ((frame + 2 * sizeof(void *)) % 16 != 0)
		n_misaligned++;
}

#define CHECK_STACK() check_stack((uintptr_t)__builtin_frame_address(0))

static void check_mask(int signal, bool is_blocked)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	if (sigismember(&now, signal) != is_blocked)
		wrong("the signal mask");
}

static bool is_on_stack(const void *p)
{
	return (const char *)p >= stack && (const char *)p < stack + sizeof(stack);
}

/* --- handlers --------------------------------------------------------------------------------- */

static void plain(int signal)
{
	CHECK_STACK();
	if (signal != SIGUSR1)
		wrong("the signal of a plain handler");
	check_mask(signal, true);
}

/* The program's own stack pointer is above the frame, and the mask is that of before. */
static void with_info(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	char here;

	CHECK_STACK();
	if (signal != SIGUSR1 || info->si_signo != signal || info->si_pid != getpid())
		wrong("siginfo");
	if ((uintptr_t)uc->uc_mcontext.gregs[SP] <= (uintptr_t)uc || (const char *)uc < &here)
		wrong("the context's stack pointer");
	if (sigismember(&uc->uc_sigmask, SIGUSR1) || !sigismember(&uc->uc_sigmask, SIGWINCH))
		wrong("the context's mask");
	/* What a handler changes there takes effect. */
	sigdelset(&((ucontext_t *)context)->uc_sigmask, SIGWINCH);
}

static void on_other_stack(int signal, siginfo_t *info, void *context)
{
	char here;

	CHECK_STACK();
	(void)info;
	if (!is_on_stack(&here) || !is_on_stack(context) ||
	    ((ucontext_t *)context)->uc_stack.ss_sp != stack)
		wrong("the other stack");
	if (signal == SIGUSR1)
		raise(SIGUSR2); /* on the same stack, below */
}

static void nesting(int signal)
{
	CHECK_STACK();
	if (signal == SIGUSR1)
		raise(SIGUSR2);
}

static void nesting_info(int signal, siginfo_t *info, void *context)
{
	CHECK_STACK();
	(void)info;
	(void)context;
	if (signal != SIGUSR2)
		wrong("the nested signal");
}

static void leaving(int signal)
{
	CHECK_STACK();
	siglongjmp(escape, signal);
}

static void tick(int signal)
{
	CHECK_STACK();
	(void)signal;
	ticks++;
}

static void tick_info(int signal, siginfo_t *info, void *context)
{
	CHECK_STACK();
	if (info->si_signo != signal || ((ucontext_t *)context)->uc_stack.ss_size != sizeof(stack))
		wrong("the arguments");
}

static void tracing(int signal)
{
	void *at[64];
	const int n = backtrace(at, 64);

	CHECK_STACK();
	(void)signal;
	/* This, the return, raise() and what it calls, raise_at(), run_tracing(), main(). */
	if (n < 7)
		wrong("the backtrace");
}

/* --- what they interrupt ---------------------------------------------------------------------- */

static void handle(int signal, int flags, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	if (sigaction(signal, &action, NULL) < 0)
		abort();
}

static void handle_info(int signal, int flags, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };

	if (sigaction(signal, &action, NULL) < 0)
		abort();
}

/* Raise a signal on a stack that is @depth words deeper. */
__attribute__((__noinline__)) static void raise_at(int signal, unsigned depth)
{
	volatile void **room = __builtin_alloca((depth + 1) * sizeof(void *));

	room[depth] = NULL;
	raise(signal);
	room[0] = NULL;
}

static void run_plain(void)
{
	handle(SIGUSR1, 0, plain);
	for (unsigned i = 0; i < N_EACH; i++) {
		raise_at(SIGUSR1, i % 32);
		check_mask(SIGUSR1, false);
	}
}

static void run_info(void)
{
	sigset_t set;

	handle_info(SIGUSR1, 0, with_info);
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	for (unsigned i = 0; i < N_EACH; i++) {
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise_at(SIGUSR1, i % 32);
		check_mask(SIGWINCH, false);
	}
}

/* 62 pairs, and a single one. */
static void run_stack(void)
{
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) }, now;

	if (sigaltstack(&other, NULL) < 0)
		abort();
	handle_info(SIGUSR1, SA_ONSTACK, on_other_stack);
	handle_info(SIGUSR2, SA_ONSTACK, on_other_stack);
	for (unsigned i = 0; i < N_EACH / 2; i++) {
		raise_at(SIGUSR1, i % 32);
		if (sigaltstack(NULL, &now) < 0 || now.ss_sp != stack || now.ss_flags != 0)
			wrong("the other stack, afterwards");
	}
	raise(SIGUSR2);
}

static void run_nested(void)
{
	handle(SIGUSR1, 0, nesting);
	handle_info(SIGUSR2, 0, nesting_info);
	for (unsigned i = 0; i < N_EACH / 2; i++)
		raise_at(SIGUSR1, i % 32);
	raise(SIGUSR2);
}

/* Two signals at once: their frames are stacked before one of the handlers begins. */
static void run_pending(void)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	handle(SIGUSR1, 0, tick);
	handle_info(SIGUSR2, 0, tick_info);
	for (unsigned i = 0; i < N_EACH / 2; i++) {
		sigprocmask(SIG_BLOCK, &set, &old);
		raise(SIGUSR1);
		raise(SIGUSR2);
		sigprocmask(SIG_SETMASK, &old, NULL);
	}
	raise(SIGUSR2);
}

static void run_leaving(void)
{
	handle(SIGUSR1, 0, leaving);
	for (volatile unsigned i = 0; i < N_EACH; i++) {
		if (sigsetjmp(escape, 1) == 0)
			raise_at(SIGUSR1, i % 32);
		check_mask(SIGUSR1, false);
	}
}

static void run_tracing(void)
{
	handle(SIGUSR1, 0, tracing);
	for (unsigned i = 0; i < N_EACH; i++)
		raise_at(SIGUSR1, i % 32);
}

/* Registers of all kinds have known values while a timer interrupts. */
static void run_registers(void)
{
	const struct itimerval each = { { 0, 500 }, { 0, 500 } }, off = {};
	const uint32_t before[4] = { 0x11223344, 0x55667788, 0x99aabbcc, 0xddeeff00 };
	uint32_t after[4];
	uintptr_t sum;

	handle(SIGALRM, 0, tick);
	ticks = 0;
	setitimer(ITIMER_REAL, &each, NULL);
	while (ticks < N_EACH) {
#ifdef __x86_64__
		__asm__ volatile(
		    "movdqu %2, %%xmm7\n movq %%rsp, %%r15\n"
		    "movl $1, %%eax\n movl $2, %%ebx\n movl $3, %%ecx\n movl $4, %%edx\n"
		    "movl $5, %%esi\n movl $6, %%edi\n movl $7, %%r8d\n movl $8, %%r9d\n"
		    "movl $9, %%r10d\n movl $10, %%r11d\n movl $11, %%r12d\n"
		    "movl $12, %%r13d\n movl $20000, %%r14d\n"
		    "movq %%rbx, -8(%%rsp)\n" /* in the red zone */
		    "1: decl %%r14d\n jnz 1b\n"
		    "subq %%rsp, %%r15\n addq %%r15, %%rax\n addq -8(%%rsp), %%rbx\n"
		    "addq %%rbx, %%rax\n addq %%rcx, %%rax\n addq %%rdx, %%rax\n"
		    "addq %%rsi, %%rax\n addq %%rdi, %%rax\n addq %%r8, %%rax\n"
		    "addq %%r9, %%rax\n addq %%r10, %%rax\n addq %%r11, %%rax\n"
		    "addq %%r12, %%rax\n addq %%r13, %%rax\n movdqu %%xmm7, %1\n"
		    : "=&a"(sum), "=m"(after)
		    : "m"(before)
		    : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
		      "r14", "r15", "xmm7", "memory", "cc");
		if (sum != 80)
			wrong("the registers");
#else
		__asm__ volatile(
		    "movdqu %2, %%xmm7\n movl $1, %%eax\n movl $3, %%ecx\n movl $4, %%edx\n"
		    "movl $20000, %%esi\n movl $6, %%edi\n"
		    "1: decl %%esi\n jnz 1b\n"
		    "addl %%ecx, %%eax\n addl %%edx, %%eax\n addl %%edi, %%eax\n"
		    "movdqu %%xmm7, %1\n"
		    : "=&a"(sum), "=m"(after)
		    : "m"(before)
		    : "ecx", "edx", "esi", "edi", "xmm7", "memory", "cc");
		if (sum != 14)
			wrong("the registers");
#endif
		if (memcmp(before, after, sizeof(before)) != 0)
			wrong("a vector register");
	}
	setitimer(ITIMER_REAL, &off, NULL);
}

int main(void)
{
	run_plain();
	run_info();
	run_stack();
	run_nested();
	run_pending();
	run_leaving();
	run_tracing();
	run_registers();
	printf("%s handlers, %u misaligned, %u wrong\n",
	       n_handlers >= 8 * N_EACH ? "1000" : "fewer", n_misaligned, n_wrong);
	return n_misaligned != 0 || n_wrong != 0;
}
