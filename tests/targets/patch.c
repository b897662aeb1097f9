/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Changes its code in place, again and again, and notes it nowhere. Both versions leave the same
 * packets: these alone cannot tell them apart.
 *
 *	patch		that is all
 *	patch exec	runs one version, executes itself, runs the other one where the first one
 *			was, says "ready", and waits for the end of its input
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_CHANGES 20
#define SIZE      4096

/* mov %edi, %eax; add $1, %eax, of three bytes or of five; ret */
static const uint8_t codes[2][8] = {
	{ 0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3 },
	{ 0x89, 0xf8, 0x05, 0x01, 0x00, 0x00, 0x00, 0xc3 },
};

/* Out of line, so that it is there whatever is called. */
static __attribute__((noinline)) int call(uint8_t *memory, int x)
{
	int (*function)(int);

	memcpy(&function, &memory, sizeof(function));
	return function(x);
}

static uint8_t *map(void *at, int flags)
{
	uint8_t *memory = mmap(at, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (memory == MAP_FAILED)
		exit(2);
	return memory;
}

static int execute(char **argv, bool again)
{
	uint8_t *memory = map((void *)0x2a0000000000, MAP_FIXED);

	memcpy(memory, codes[again], sizeof(codes[0]));
	if (call(memory, 1) != 2)
		return 1;
	if (!again)
		execl(argv[0], argv[0], "exec", "again", (char *)NULL);
	printf("ready\n");
	fflush(stdout);
	(void)getchar();
	return !again;
}

int main(int argc, char **argv)
{
	uint8_t *memory;
	int sum = 0;

	if (argc > 1)
		return execute(argv, argc > 2);
	memory = map(NULL, 0);
	for (unsigned i = 0; i < N_CHANGES; i++) {
		memcpy(memory, codes[i % 2], sizeof(codes[0]));
		sum = call(memory, sum);
	}
	printf("%d\n", sum);
	return sum != N_CHANGES;
}
