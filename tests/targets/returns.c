/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * returns: its calls and returns do not fit each other, in all the ways in which programs do that.
 * Recursions are deeper than a CPU's stack of return addresses, longjmp() and exceptions of the
 * kind pass over calls, stacks are switched, and returns go to what was pushed as a jump would. Its
 * test also builds it with -mindirect-branch=thunk and -mfunction-return=thunk, by which each
 * indirect branch and each return becomes a retpoline.
 */

#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

#define NOINLINE __attribute__((__noinline__, __noclone__))
#define STACK    65536

static volatile unsigned long sum;
static jmp_buf landing;
static ucontext_t here, there;

NOINLINE static void leaf(unsigned long n)
{
	sum += n;
}

static void (*volatile called)(unsigned long) = leaf;

/* @depth calls, each of which makes another one on the way back. */
NOINLINE static unsigned long descend(unsigned depth)
{
	unsigned long n = 1;

	if (depth > 0)
		n += descend(depth - 1);
	if (depth % 3 == 0)
		called(n);
	return n;
}

NOINLINE static void throw(unsigned depth)
{
	if (depth == 0)
		longjmp(landing, 1);
	throw(depth - 1);
	leaf(depth);
}

NOINLINE static void catch (unsigned depth)
{
	if (setjmp(landing) == 0)
		throw(depth);
	called(depth);
}

/* Two stacks take turns, both within calls. */
NOINLINE static void other_turn(unsigned n)
{
	called(n);
	(void)swapcontext(&there, &here);
}

static void other(void)
{
	for (unsigned n = 0;; n++)
		other_turn(n);
}

NOINLINE static void turn(void)
{
	(void)swapcontext(&here, &there);
	called(1);
}

NOINLINE static void take_turns(unsigned n)
{
	static char stack[STACK];

	if (getcontext(&there) != 0)
		abort();
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, other, 0);
	while (n-- > 0)
		turn();
}

/* A jump that is made by a return; and a function that returns to its caller's caller. */
__asm__(".text\n"
#ifdef __x86_64__
	"jump: lea 1f(%rip), %rax\n"
	"push %rax\n"
	"ret\n"
	"1: ret\n"
	"skipping: call skip\n"
	"ud2\n"
	"skip: add $8, %rsp\n"
	"ret\n"
	"thunk: call 2f\n"
	"1: pause\n"
	"jmp 1b\n"
	"2: mov %rdi, (%rsp)\n"
	"ret\n"
#else
	"jump: call 1f\n"
	"1: addl $2f - 1b, (%esp)\n"
	"ret\n"
	"2: ret\n"
	"skipping: call skip\n"
	"ud2\n"
	"skip: add $4, %esp\n"
	"ret\n"
	"thunk: call 2f\n"
	"1: pause\n"
	"jmp 1b\n"
	"2: mov 8(%esp), %eax\n"
	"mov %eax, (%esp)\n"
	"ret\n"
#endif
);
void jump(void), skipping(void), thunk(void (*)(void));

int main(void)
{
	for (unsigned round = 0; round < 40; round++) {
		(void)descend(round * 5);
		catch (round);
		take_turns(round % 7);
		jump();
		skipping();
		thunk(jump);
		thunk(skipping);
	}
	return sum == 0;
}
