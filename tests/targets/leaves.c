/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Blocks that are left before their end although control goes on where their end leads, too: loops
 * whose first instruction cannot be done at once. A recorder that knows a block only by where the
 * next one begins would say that the loop went round once more. Prints how often it was left.
 *
 *	fault	the first instruction reads a page that a signal handler then makes readable
 *	divide	it divides by 0, and a handler changes the divisor
 *	atomic	it is an atomic operation across words beside another thread, which QEMU runs alone
 *	write	it overwrites the block that it is in, which QEMU translates anew then
 *	timer	nothing is the matter, but signals come when they want
 */

#define _GNU_SOURCE

#include <errno.h>
#include <error.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE   4096
#define ROUNDS 50

static volatile sig_atomic_t n_faults, n_divisions, n_alarms;
static atomic_bool over;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	const uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);

	n_faults++;
	if (mprotect((void *)page, PAGE, PROT_READ) < 0)
		_exit(1);
}

static void on_division(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	n_divisions++;
	uc->uc_mcontext.gregs[REG_RSI] = 3;
}

static void on_alarm(int signal)
{
	n_alarms++;
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_sigaction = handler };

	if (sigaction(signal, &action, NULL) < 0)
		error(1, errno, "sigaction");
}

static void fault(void)
{
	uint8_t *pages =
	    mmap(NULL, PAGE * (ROUNDS + 1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = pages;
	long left = ROUNDS + 1;

	if (pages == MAP_FAILED)
		error(1, errno, "mmap");
	__asm__ volatile("1: movb (%0), %%al\n"
			 "add $4096, %0\n"
			 "dec %1\n"
			 "jnz 1b\n"
			 : "+r"(at), "+r"(left)
			 :
			 : "rax", "memory", "cc");
	munmap(pages, PAGE * (ROUNDS + 1));
}

static void divide(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		long left = 3;

		__asm__ volatile("xor %%esi, %%esi\n"
				 "xor %%edx, %%edx\n"
				 "mov $100, %%eax\n"
				 "jmp 1f\n"
				 "1: div %%esi\n"
				 "xor %%edx, %%edx\n"
				 "dec %0\n"
				 "jnz 1b\n"
				 : "+r"(left)
				 :
				 : "rax", "rdx", "rsi", "cc");
	}
}

static void *spin(void *unused)
{
	while (!atomic_load(&over))
		;
	return NULL;
}

static void atomic(void)
{
	_Alignas(64) uint8_t bytes[128] = {};
	pthread_t thread;
	long left = ROUNDS;

	if (pthread_create(&thread, NULL, spin, NULL) != 0)
		error(1, 0, "pthread_create");
	__asm__ volatile("1: lock incl (%1)\n"
			 "dec %0\n"
			 "jnz 1b\n"
			 : "+r"(left)
			 : "r"(bytes + 61)
			 : "memory", "cc");
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}

static void write_code(void)
{
	static const uint8_t loop[] = {
		0x88, 0x07, /* mov %al, (%rdi) */
		0xb2, 0x00, /* mov $0, %dl: the byte that is overwritten */
		0xfe, 0xc0, /* inc %al */
		0xff, 0xce, /* dec %esi */
		0x75, 0xf6, /* jnz to the first */
		0xc3,       /* ret */
	};
	uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long left = ROUNDS, at;

	if (code == MAP_FAILED)
		error(1, errno, "mmap");
	memcpy(code, loop, sizeof(loop));
	at = (long)(code + 3);
	__asm__ volatile("call *%2\n"
			 : "+D"(at), "+S"(left)
			 : "r"(code)
			 : "rax", "rdx", "memory", "cc");
}

static void timer(void)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = {};
	long left = 1000000;

	if (signal(SIGALRM, on_alarm) == SIG_ERR || setitimer(ITIMER_REAL, &often, NULL) < 0)
		error(1, errno, "setitimer");
	while (n_alarms < ROUNDS) {
		left = 1000000;
		__asm__ volatile("1: movb (%1), %%al\n"
				 "dec %0\n"
				 "jnz 1b\n"
				 : "+r"(left)
				 : "r"(&left)
				 : "rax", "cc");
	}
	(void)setitimer(ITIMER_REAL, &never, NULL);
}

int main(void)
{
	handle(SIGSEGV, on_fault);
	handle(SIGFPE, on_division);
	fault();
	divide();
	atomic();
	write_code();
	timer();
	printf("%d faults, %d divisions, %s\n", (int)n_faults, (int)n_divisions,
	       n_alarms >= ROUNDS ? "alarms" : "none");
	return 0;
}
