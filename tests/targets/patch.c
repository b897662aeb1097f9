/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Changes its code in place, again and again, and notes it nowhere. Both versions leave the same
 * packets: these alone cannot tell them apart.
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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

int main(void)
{
	uint8_t *memory;
	int sum = 0;

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return 2;
	for (unsigned i = 0; i < N_CHANGES; i++) {
		memcpy(memory, codes[i % 2], sizeof(codes[0]));
		sum = call(memory, sum);
	}
	printf("%d\n", sum);
	return sum != N_CHANGES;
}
