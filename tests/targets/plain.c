/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls and returns, and nothing else: perf script --call-trace shows the same tree. */

#include <stdio.h>

static volatile int sum;

static void leaf(int n)
{
	sum += n;
}

static void odd(int n);

static void even(int n)
{
	leaf(n);
	if (n > 0)
		odd(n - 1);
}

static void odd(int n)
{
	if (n > 0)
		even(n - 1);
	leaf(n);
}

static int fibonacci(int n)
{
	leaf(n);
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		if (i % 2)
			odd(i);
		else
			even(i);
	}
	printf("%d\n", fibonacci(12));
	return 0;
}
