/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * own WHAT FIFO: what a user may see of it, and others may not. It computes in turns, between which
 * others run, until it has taken 200, prints its process, and reads from FIFO until that is closed.
 * OWNER, a number, is in its code, in a string and in the name of a function.
 *
 * WHAT: "plain"; "hide": it is no longer dumpable before it computes; "drop": run by root, it
 * becomes user OWNER before it computes, and is dumpable again.
 */

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef OWNER
#define OWNER 60000
#endif

#define TEXT2(x)     #x
#define TEXT(x)      TEXT2(x)
#define JOIN2(a, b)  a##b
#define JOIN(a, b)   JOIN2(a, b)
#define symbol_owner JOIN(symbol_, OWNER)
#define hidden_owner JOIN(hidden_, OWNER)

static volatile char text[] = "STRING-" TEXT(OWNER);

__attribute__((noinline)) static unsigned symbol_owner(unsigned x)
{
	for (unsigned i = 0; i < 300; i++)
		x = x * 3 + OWNER + (unsigned)text[i % 10];
	return x;
}

/* What ran when the process was not dumpable, or not the user's. */
__attribute__((noinline)) static unsigned hidden_owner(unsigned x)
{
	for (unsigned i = 0; i < 300; i++)
		x = x * 5 + OWNER + (unsigned)text[i % 10];
	return x;
}

static void become(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(OWNER, OWNER, OWNER) < 0 ||
	    setresuid(OWNER, OWNER, OWNER) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		abort();
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	unsigned x = (unsigned)argc;
	char byte;
	int fd;

	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "drop") == 0) {
		x = hidden_owner(x);
		become();
	} else if (strcmp(argv[1], "hide") == 0 && prctl(PR_SET_DUMPABLE, 0) < 0) {
		abort();
	}
	for (int i = 0; i < 200; i++) {
		x = strcmp(argv[1], "plain") == 0 ? symbol_owner(x) : hidden_owner(x);
		(void)nanosleep(&pause, NULL);
	}
	printf("%d %d\n", OWNER, (int)getpid());
	(void)fflush(stdout);
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, &byte, 1) > 0)
		;
	return x == 1;
}
