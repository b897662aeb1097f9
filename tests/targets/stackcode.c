/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Runs code on its stack, which is executable from the start (the test sees to it): no system call
 * makes it so. Then it says so, and goes on when its input ends.
 */

#include <stdio.h>

static int __attribute__((__noinline__)) call(int (*volatile function)(int), int x)
{
	return function(x);
}

int main(void)
{
#ifdef __i386__
	/* mov 4(%esp), %eax; add $3, %eax; ret */
	volatile unsigned char code[] = { 0x8b, 0x44, 0x24, 0x04, 0x83, 0xc0, 0x03, 0xc3 };
#else
	/* mov %edi, %eax; add $3, %eax; ret */
	volatile unsigned char code[] = { 0x89, 0xf8, 0x83, 0xc0, 0x03, 0xc3 };
#endif
	int sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += call((int (*)(int))(unsigned long)code, i);
	printf("%d\n", sum);
	fflush(stdout);
	(void)getchar();
	return sum != 502500;
}
