/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Code that comes and goes in other ways than by call and return, each many times: functions that
 * are entered by a push and a jump, alone and as an interpreter's, functions that return to each
 * other, calls whose return address is popped, coroutines on stacks of their own, longjmp() and
 * exceptions out of many functions, signal handlers that come over these, and vfork(). The stack is
 * never deep, but in one recursion. It prints how many of its functions were open at most.
 */

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

#define HERE   __attribute__((noipa))
#define ROUNDS 300

namespace
{

int depth, deepest;
volatile unsigned work;

struct Open {
	Open()
	{
		if (++depth > deepest)
			deepest = depth;
	}
	~Open()
	{
		depth--;
	}
};

} // namespace

extern "C" {

HERE void leaf()
{
	Open open;

	work = work + 1;
}

void by_jump(), by_jump_nested(), interpret(), by_list(), by_pop(), alternate(void **, void **);
}

/*
 * by_jump() enters pushed() so; that of by_jump_nested() enters another one so. interpret() pushes
 * an address, and jumps to op_first(), from where op after op is jumped to, until one returns.
 * by_list() has a stack of addresses to which op after op returns, and the last is in by_list().
 * by_pop() calls what pops its return address, and jumps there. alternate() changes stacks.
 */
__asm__(
    ".text\n"
    ".macro begin name\n .globl \\name\n .type \\name,@function\n\\name:\n .endm\n"
    ".macro end name\n .size \\name,.-\\name\n .endm\n"
    "begin by_jump\n"
    "	push %rbx\n	lea 1f(%rip),%rax\n	push %rax\n	jmp pushed\n"
    "1:	pop %rbx\n	ret\n"
    "end by_jump\n"
    "begin pushed\n	push %rbx\n	call leaf\n	pop %rbx\n	ret\nend pushed\n"
    "begin by_jump_nested\n"
    "	lea 1f(%rip),%rax\n	push %rax\n	lea pushing(%rip),%rax\n	jmp *%rax\n"
    "1:	ret\n"
    "end by_jump_nested\n"
    "begin pushing\n	lea 1f(%rip),%rax\n	push %rax\n	jmp pushed\n1:	ret\nend pushing\n"
    "begin interpret\n"
    "	push %rbx\n	push %r12\n	push %r13\n	lea ops(%rip),%rbx\n	mov $20,%r12\n"
    "1:	lea 2f(%rip),%rax\n	push %rax\n	lea op_first(%rip),%rax\n	jmp *%rax\n"
    "2:	dec %r12\n	jnz 1b\n	pop %r13\n	pop %r12\n	pop %rbx\n	ret\n"
    ".pushsection .data.rel.local,\"aw\"\n"
    "ops:	.quad op_second, op_third, op_second, op_last\n"
    ".popsection\n"
    "end interpret\n"
    "begin op_first\n	mov %rbx,%r13\n	add $8,%r13\n	jmp *-8(%r13)\nend op_first\n"
    "begin op_second\n	add $8,%r13\n	jmp *-8(%r13)\nend op_second\n"
    "begin op_third\n	call leaf\n	add $8,%r13\n	jmp *-8(%r13)\nend op_third\n"
    "begin op_last\n	ret\nend op_last\n"
    "begin by_list\n"
    "	push %rbp\n	mov %rsp,%rbp\n"
    "	lea 1f(%rip),%rax\n	push %rax\n	lea listed_b(%rip),%rax\n	push %rax\n"
    "	lea listed_a(%rip),%rax\n	push %rax\n	push %rax\n	ret\n"
    "1:	mov %rbp,%rsp\n	pop %rbp\n	ret\n"
    "end by_list\n"
    "begin listed_a\n	nop\n	ret\nend listed_a\n"
    "begin listed_b\n	sub $8,%rsp\n	add $8,%rsp\n	ret\nend listed_b\n"
    "begin by_pop\n"
    "	push %rbx\n	mov $20,%ebx\n"
    "1:	call popping\n	dec %ebx\n	jnz 1b\n	mov $20,%ebx\n"
    "2:	call 3f\n	nop\n3:	pop %rax\n	dec %ebx\n	jnz 2b\n	pop %rbx\n	"
    "ret\n"
    "end by_pop\n"
    "begin popping\n	pop %rax\n	jmp *%rax\nend popping\n"
    "begin alternate\n"
    "	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
    "	mov %rsp,(%rdi)\n	mov (%rsi),%rsp\n"
    "	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop "
    "%rbx\n	ret\n"
    "end alternate\n");

namespace
{

void *own_sp, *other_sp;
sigjmp_buf there;

HERE void yield()
{
	Open open;

	alternate(&other_sp, &own_sp);
}

extern "C" void coroutine()
{
	for (int i = 0; i < 3; i++) {
		by_jump();
		yield();
	}
	for (;;)
		alternate(&other_sp, &own_sp);
}

/* A coroutine that begins, waits three times, and is given up. */
HERE void run_coroutine()
{
	alignas(16) static char stack[64 * 1024];
	void **top = reinterpret_cast<void **>(stack + sizeof(stack) - 16);
	const int before = depth;

	*--top = nullptr;
	*--top = reinterpret_cast<void *>(coroutine);
	other_sp = top - 6;
	for (int i = 0; i < 4; i++)
		alternate(&own_sp, &other_sp);
	depth = before;
}

HERE unsigned recurse(unsigned n)
{
	Open open;

	return n ? recurse(n - 1) + 1 : 0;
}

HERE void jump_out(int n)
{
	Open open;

	if (n)
		jump_out(n - 1);
	siglongjmp(there, 1);
}

HERE void jump()
{
	const int before = depth;

	if (sigsetjmp(there, 0) == 0)
		jump_out(30);
	depth = before;
}

HERE void throw_out(int n)
{
	Open open;

	by_jump();
	if (n)
		throw_out(n - 1);
	throw n;
}

HERE void catch_it()
{
	try {
		throw_out(10);
	} catch (int) {
		leaf();
	}
}

/* It comes between two of these, and does the same. */
void on_signal(int number)
{
	Open open;

	by_jump();
	by_list();
	if (number == SIGUSR2)
		siglongjmp(there, 1);
}

HERE void signal_out()
{
	const int before = depth;

	if (sigsetjmp(there, 1) == 0)
		raise(SIGUSR2);
	depth = before;
	raise(SIGUSR1);
}

HERE void fork_child()
{
	const pid_t child = vfork();

	if (child == 0)
		_exit(0);
	waitpid(child, nullptr, 0);
}

HERE void run(int i)
{
	Open open;

	by_jump();
	by_jump_nested();
	interpret();
	by_list();
	by_pop();
	run_coroutine();
	jump();
	catch_it();
	signal_out();
	if (i % 30 == 0)
		fork_child();
}

} // namespace

int main()
{
	Open open;

	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	work = recurse(100);
	for (int i = 0; i < ROUNDS; i++)
		run(i);
	printf("%d\n", deepest);
	return 0;
}
