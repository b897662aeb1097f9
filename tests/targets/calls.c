/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls the kernel 1000 times in its main loop, each time for something else: what returns at once,
 * what fails, what sleeps, what faults, what wakes another process. It prints its process.
 */

#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_CALLS 1000

int main(void)
{
	int there[2], back[2], n = 0;
	char byte = 0;
	pid_t child;
	void *page = NULL;

	if (pipe(there) < 0 || pipe(back) < 0)
		return 1;
	child = fork();
	if (child == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	while (n < N_CALLS) {
		switch (n++ % 10) {
		case 0:
			(void)syscall(SYS_getppid);
			break;
		case 1:
			(void)syscall(SYS_close, -1);
			break;
		case 2:
			page = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			*(volatile char *)page = 1;
			break;
		case 3:
			(void)syscall(SYS_munmap, page, 4096);
			break;
		case 4:
			(void)syscall(SYS_read, back[0], NULL, 0);
			break;
		case 5:
			(void)syscall(SYS_write, there[1], &byte, 1);
			break;
		case 6:
			(void)syscall(SYS_read, back[0], &byte, 1);
			break;
		case 7:
			(void)syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 1000 }, NULL);
			break;
		case 8:
			(void)syscall(SYS_access, "/no/such/file", R_OK);
			break;
		case 9:
			(void)syscall(SYS_sched_yield);
			break;
		}
	}
	close(there[1]);
	(void)waitpid(child, NULL, 0);
	printf("%d\n", (int)getpid());
	return 0;
}
