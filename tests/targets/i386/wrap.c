/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * For i386, and not as a PIE. Calls itself, mapped a second time far up, back and forth, by direct
 * calls: what they add to the address goes beyond either end of the 4 GiB.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define FAR       0xf0000000
#define STRING(x) #x
#define VALUE(x)  STRING(x)

extern const char __executable_start[], far_page[];

int call_far(int x);
int back(int x);

int back(int x)
{
	return 3 * x + 1;
}

/* far_page is what runs at FAR: it calls back(). The assembler does not know that it will be
 * there. */
__asm__(".text\n"
	"	.p2align 12\n"
	"far_page:\n"
	"	push 4(%esp)\n"
	"	.byte 0xe8\n"
	"	.long back - " VALUE(FAR) " - (1f - far_page)\n"
					  "1:	pop %ecx\n"
					  "	ret\n"
					  "	.p2align 12\n"
					  "	.globl call_far\n"
					  "call_far:\n"
					  "	push 4(%esp)\n"
					  "	.byte 0xe8\n"
					  "	.long " VALUE(FAR) " - 1f\n"
								   "1:	pop %ecx\n"
								   "	ret\n");

int main(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int sum = 0;

	if (mmap((void *)FAR, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
		 far_page - __executable_start) != (void *)FAR) {
		perror("mmap");
		return 2;
	}
	for (int i = 0; i < 10; i++)
		sum += call_far(i);
	printf("%d\n", sum);
	return sum != 145;
}
