/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that logs which of its functions it enters and leaves, so that the call layer can be
 * compared with that: recursion, tail calls, longjmp, signal handlers that return and that leave
 * by siglongjmp, fibers of two kinds, threads, callbacks out of the C library, lazy binding, and a
 * library that is opened while it runs.
 *
 *	calltruth LOG [LIBRARY]
 *
 * The log has a line for each entry and exit: the thread, + or -, and the function. A signal only
 * comes where no function is entered or left, so the order is exact.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define THREADS   12
#define NOTES_MAX 200000
#define FIBERS    5
#define STACK     (256 * 1024)

#define HERE __attribute__((noipa))

struct notes {
	pid_t tid;
	size_t n;
	struct note {
		char what;
		const char *name;
	} items[NOTES_MAX];
};

static struct notes *all[THREADS + 1];
static _Atomic size_t n_all;
static __thread struct notes *notes;

static void note(char what, const char *name)
{
	notes->items[notes->n++] = (struct note){ what, name };
}

static void begin_notes(void)
{
	notes = calloc(1, sizeof(*notes));
	if (!notes)
		abort();
	notes->tid = gettid();
	all[atomic_fetch_add(&n_all, 1)] = notes;
}

#define ENTER() note('+', __func__)
#define LEAVE() note('-', __func__)

static volatile uint64_t work;

/* --- calls ------------------------------------------------------------------------------------ */

HERE static uint64_t leaf(uint64_t n)
{
	ENTER();
	work += n;
	LEAVE();
	return n * 3;
}

HERE static uint64_t recurse(unsigned n)
{
	uint64_t x;

	ENTER();
	x = n == 0 ? leaf(1) : recurse(n - 1) + (n % 3 ? 0 : leaf(n));
	LEAVE();
	return x;
}

HERE static uint64_t fibonacci(unsigned n)
{
	uint64_t x;

	ENTER();
	x = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
	LEAVE();
	return x;
}

/* A function that jumps is left before. */
HERE static uint64_t tail_end(uint64_t n)
{
	ENTER();
	work += n;
	LEAVE();
	return n + work;
}

static uint64_t (*volatile indirect)(uint64_t) = tail_end;

HERE static uint64_t tail_indirect(uint64_t n)
{
	ENTER();
	work += n;
	LEAVE();
	return indirect(n + 1);
}

HERE static uint64_t tail_if(uint64_t n)
{
	ENTER();
	LEAVE();
	if (n % 2)
		return tail_end(n);
	return tail_indirect(n);
}

HERE static uint64_t tail_first(uint64_t n)
{
	ENTER();
	work ^= n;
	LEAVE();
	return tail_if(n + 7);
}

static int compare(const void *pa, const void *pb)
{
	const unsigned a = *(const unsigned *)pa, b = *(const unsigned *)pb;

	ENTER();
	leaf(a);
	LEAVE();
	return a < b ? -1 : a > b;
}

HERE static void sort(void)
{
	unsigned numbers[64], x = 1;

	ENTER();
	for (size_t i = 0; i < 64; i++)
		numbers[i] = x = x * 1103515245 + 12345;
	qsort(numbers, 64, sizeof(*numbers), compare);
	LEAVE();
}

/* Each is bound at its first call. */
HERE static void bind(void)
{
	ENTER();
	for (int i = 0; i < 2; i++) {
		work += (uint64_t)strtol("12", NULL, 10) + (uint64_t)strverscmp("a", "b");
		work += (uint64_t)ffsl(12) + strcspn("abc", "c") + (uint64_t)labs(-3);
		leaf(5);
	}
	LEAVE();
}

/* --- jumps ------------------------------------------------------------------------------------ */

static jmp_buf there;

HERE static void jump_out(unsigned n)
{
	ENTER();
	leaf(n);
	if (n > 0)
		jump_out(n - 1);
	for (unsigned i = 0; i < 6; i++)
		note('-', "jump_out");
	note('-', "jump_between");
	longjmp(there, 1);
}

HERE static void jump_between(void)
{
	ENTER();
	jump_out(5);
	LEAVE();
}

HERE static void jump(void)
{
	ENTER();
	if (setjmp(there) == 0)
		jump_between();
	else
		leaf(2);
	leaf(3);
	LEAVE();
}

/* Not by name: what a handler finds on the stack is only what was noted there. */
static sigjmp_buf escape;
static volatile sig_atomic_t told;

static void on_told(int number)
{
	ENTER();
	leaf((uint64_t)number);
	told = 1;
	LEAVE();
}

static void on_nested(int number)
{
	ENTER();
	raise(SIGUSR1);
	leaf((uint64_t)number);
	LEAVE();
}

static void on_fault(int number)
{
	ENTER();
	leaf((uint64_t)number);
	note('-', __func__);
	note('-', "fault_inside");
	siglongjmp(escape, 1);
}

static void on_step(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	ENTER();
	u->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
	LEAVE();
}

HERE static void be_told(void)
{
	ENTER();
	told = 0;
	raise(SIGUSR1);
	raise(SIGUSR2);
	leaf(told != 0);
	LEAVE();
}

static void *tell(void *arg)
{
	usleep(20000);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

/* The signal comes between two instructions of a loop. */
HERE static void spin(void)
{
	pthread_t self = pthread_self(), other;

	ENTER();
	told = 0;
	if (pthread_create(&other, NULL, tell, &self) != 0)
		abort();
	while (!told)
		work++;
	pthread_join(other, NULL);
	LEAVE();
}

HERE static void fault_inside(void)
{
	ENTER();
	/* What was noted is in memory when it faults. */
	__asm__ volatile("" ::: "memory");
	*(volatile int *)NULL = 1;
	LEAVE();
}

HERE static void fault(void)
{
	ENTER();
	if (sigsetjmp(escape, 1) == 0)
		fault_inside();
	leaf(4);
	LEAVE();
}

HERE static void step_over(void)
{
	ENTER();
	__asm__ volatile("ud2");
	leaf(5);
	LEAVE();
}

static void set_handler(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(number, &action, NULL);
}

HERE static void handle_signals(void)
{
	struct sigaction step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	ENTER();
	set_handler(SIGUSR1, on_told);
	set_handler(SIGUSR2, on_nested);
	set_handler(SIGSEGV, on_fault);
	sigaction(SIGILL, &step, NULL);
	for (int i = 0; i < 10; i++) {
		be_told();
		fault();
		step_over();
	}
	spin();
	LEAVE();
}

/* --- fibers ----------------------------------------------------------------------------------- */

static ucontext_t scheduler, fibers[FIBERS];
static size_t current;

HERE static void yield(void)
{
	ENTER();
	swapcontext(&fibers[current], &scheduler);
	LEAVE();
}

/*
 * The fibers go down to different depths, and yield there. They go on in another order than the one
 * in which they yielded.
 */
HERE static void descend(unsigned n)
{
	ENTER();
	if (n > 0)
		descend(n - 1);
	else
		for (unsigned i = 0; i < 3; i++) {
			leaf(i);
			yield();
		}
	LEAVE();
}

static void fiber(void)
{
	ENTER();
	yield();
	descend((unsigned)current * 2);
	LEAVE();
}

HERE static void run_fibers(void)
{
	static char stacks[FIBERS][STACK];

	ENTER();
	for (size_t i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i]);
		fibers[i].uc_stack = (stack_t){ .ss_sp = stacks[i], .ss_size = STACK };
		fibers[i].uc_link = &scheduler;
		makecontext(&fibers[i], fiber, 0);
	}
	for (unsigned round = 0; round < 5; round++)
		for (size_t i = 0; i < FIBERS; i++) {
			current = round % 2 ? FIBERS - 1 - i : i;
			swapcontext(&scheduler, &fibers[current]);
		}
	LEAVE();
}

/* --- fibers of our own ------------------------------------------------------------------------ */

/*
 * Nothing knows this function by its name. It leaves its stack pointer in @from, and goes on at
 * that in @to.
 */
void alternate(void **from, void *const *to);
__asm__(".text\n"
	".globl alternate\n"
	".type alternate, @function\n"
	"alternate:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov (%rsi), %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size alternate, . - alternate\n");

static void *main_sp, *own_sp[FIBERS];

HERE static void own_yield(void)
{
	ENTER();
	alternate(&own_sp[current], &main_sp);
	LEAVE();
}

HERE static void own_descend(unsigned n)
{
	ENTER();
	if (n > 0)
		own_descend(n - 1);
	else
		for (unsigned i = 0; i < 3; i++) {
			leaf(i);
			own_yield();
		}
	LEAVE();
}

/* The first time that it changes stacks, that is not seen. */
static void own_fiber(void)
{
	alternate(&own_sp[current], &main_sp);
	own_descend((unsigned)current * 2);
	for (;;)
		alternate(&own_sp[current], &main_sp);
}

HERE static void run_own_fibers(void)
{
	static char stacks[FIBERS][STACK] __attribute__((aligned(16)));

	for (size_t i = 0; i < FIBERS; i++) {
		void **top = (void **)(stacks[i] + STACK - 16);

		*--top = NULL;
		*--top = (void *)(uintptr_t)own_fiber;
		own_sp[i] = top - 6;
	}
	for (unsigned round = 0; round < 6; round++)
		for (size_t i = 0; i < FIBERS; i++) {
			current = round % 2 ? FIBERS - 1 - i : i;
			alternate(&main_sp, &own_sp[current]);
		}
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *thread(void *arg)
{
	begin_notes();
	ENTER();
	for (uintptr_t i = 0; i < 20 + (uintptr_t)arg; i++) {
		recurse((unsigned)i % 9);
		tail_first(i);
	}
	LEAVE();
	return NULL;
}

HERE static void run_threads(void)
{
	pthread_t threads[THREADS];

	ENTER();
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)i) != 0)
			abort();
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	LEAVE();
}

/* --- a library -------------------------------------------------------------------------------- */

HERE static void run_library(const char *path)
{
	void *library;
	void (*opened)(void (*)(char, const char *), uint64_t (*)(uint64_t));

	ENTER();
	library = dlopen(path, RTLD_LAZY);
	*(void **)&opened = library ? dlsym(library, "opened") : NULL;
	if (!opened)
		abort();
	/* It stays open, because names of its functions are noted. */
	opened(note, leaf);
	LEAVE();
}

static int write_notes(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return 1;
	for (size_t i = 0; i < n_all; i++)
		for (size_t k = 0; k < all[i]->n; k++)
			fprintf(f, "%d %c%s\n", (int)all[i]->tid, all[i]->items[k].what,
				all[i]->items[k].name);
	return fclose(f) != 0;
}

HERE static void run(const char *library)
{
	ENTER();
	recurse(40);
	fibonacci(12);
	for (uint64_t i = 0; i < 20; i++)
		tail_first(i);
	sort();
	bind();
	jump();
	handle_signals();
	run_fibers();
	run_own_fibers();
	run_threads();
	if (library)
		run_library(library);
	jump();
	LEAVE();
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	begin_notes();
	run(argc > 2 ? argv[2] : NULL);
	return write_notes(argv[1]);
}
