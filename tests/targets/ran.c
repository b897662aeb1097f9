/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Runs code that is in no file, or not as the file has it, and frees it: in anonymous memory, in a
 * memfd, in files of /dev/shm and in one that was deleted, in its own text; changed and changed
 * back; in forked children that run what their parent had translated; where a file was mapped
 * before, and where one is mapped afterwards. All versions of the code leave the same packets, and
 * have their instructions elsewhere.
 *
 *	ran [FILE [ROUNDS]]	the file that is deleted; how often its memory changes at first
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE     4096
#define VERSIONS 3

/* mov %edi, %eax; add $1, %eax, of three bytes, of five, of three behind a nop; ret */
static const uint8_t codes[VERSIONS][8] = {
	{ 0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3 },
	{ 0x89, 0xf8, 0x05, 0x01, 0x00, 0x00, 0x00, 0xc3 },
	{ 0x90, 0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3 },
};

static int sum;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Out of line, so that it is there whatever is called. */
static __attribute__((noinline)) int call(const uint8_t *memory, int x)
{
	int (*function)(int);

	memcpy(&function, &memory, sizeof(function));
	return function(x);
}

static void run(const uint8_t *memory)
{
	for (int i = 0; i < 3; i++)
		sum = call(memory, sum);
}

static uint8_t *map_at(void *at, int prot, int flags, int fd)
{
	uint8_t *memory = mmap(at, SIZE, prot, flags | (at ? MAP_FIXED : 0), fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

static uint8_t *map_code(void *at)
{
	return map_at(at, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Each version replaces each other one, and comes again where it was; also beside it. */
static void change(uint8_t *memory)
{
	for (int i = 0; i < 2 * VERSIONS * VERSIONS; i++) {
		memcpy(memory + i % 2 * 64, codes[i / 2 % VERSIONS], sizeof(codes[0]));
		run(memory + i % 2 * 64);
		memcpy(memory, codes[i % VERSIONS], sizeof(codes[0]));
		run(memory);
	}
}

static void with_file(int fd)
{
	uint8_t *memory;

	if (fd < 0 || ftruncate(fd, SIZE) < 0 || pwrite(fd, codes[0], sizeof(codes[0]), 0) < 0)
		fail("file");
	memory = map_at(NULL, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd);
	run(memory);
	change(memory);
	(void)munmap(memory, SIZE);
	memory = map_at(NULL, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd);
	run(memory);
	change(memory);
	(void)munmap(memory, SIZE);
	(void)close(fd);
}

/* The child runs what was translated before it was there, changes it, and so does the parent. */
static void with_children(void)
{
	uint8_t *memory = map_code(NULL);

	for (int i = 0; i < VERSIONS; i++) {
		int status;
		pid_t pid;

		memcpy(memory, codes[i], sizeof(codes[0]));
		run(memory);
		pid = fork();
		if (pid == 0) {
			run(memory);
			change(memory);
			_exit(0);
		}
		memcpy(memory, codes[(i + 1) % VERSIONS], sizeof(codes[0]));
		run(memory);
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
			fail("fork");
	}
	(void)munmap(memory, SIZE);
}

static __attribute__((noinline, aligned(SIZE))) int text(int x)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop" : "+r"(x));
	return x + 1;
}

/* In memory, then a file there, then memory again, all at one address. */
static void in_turn(int fd)
{
	uint8_t *memory = map_code(NULL);

	for (int i = 0; i < VERSIONS; i++) {
		memcpy(memory, codes[i], sizeof(codes[0]));
		run(memory);
		(void)map_at(memory, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd);
		run(memory);
		(void)map_code(memory);
		memcpy(memory, codes[i], sizeof(codes[0]));
		run(memory);
	}
	(void)munmap(memory, SIZE);
}

/* Its own text, which the file has: changed, protected again, and as it was. */
static void with_text(void)
{
	uint8_t before[sizeof(codes[0])], *memory;
	int (*function)(int) = text;

	memcpy(&memory, &function, sizeof(memory));
	sum = text(sum);
	memcpy(before, memory, sizeof(before));
	for (int i = 0; i < VERSIONS; i++) {
		if (mprotect(memory, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
			fail("mprotect");
		memcpy(memory, codes[i], sizeof(codes[0]));
		run(memory);
		if (mprotect(memory, SIZE, PROT_READ | PROT_EXEC) < 0)
			fail("mprotect");
		run(memory);
		if (mprotect(memory, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
			fail("mprotect");
		memcpy(memory, before, sizeof(before));
		run(memory);
	}
	if (mprotect(memory, SIZE, PROT_READ | PROT_EXEC) < 0)
		fail("mprotect");
}

int main(int argc, char **argv)
{
	char shm[64], deleted[64];
	uint8_t *memory = map_code(NULL);
	int fd;

	for (int i = 0; i < (argc > 2 ? atoi(argv[2]) : 1); i++)
		change(memory);
	(void)munmap(memory, SIZE);
	with_children();
	with_text();

	with_file(memfd_create("code", 0));
	(void)snprintf(shm, sizeof(shm), "/dev/shm/ran-%d", (int)getpid());
	with_file(open(shm, O_RDWR | O_CREAT | O_EXCL, 0700));
	(void)unlink(shm);
	(void)snprintf(deleted, sizeof(deleted), "ran-%d", (int)getpid());
	fd = open(argc > 1 ? argv[1] : deleted, O_RDWR | O_CREAT | O_EXCL, 0700);
	(void)unlink(argc > 1 ? argv[1] : deleted);
	with_file(dup(fd));
	if (fd < 0 || ftruncate(fd, SIZE) < 0 || pwrite(fd, codes[1], sizeof(codes[0]), 0) < 0)
		fail("file");
	in_turn(fd);
	printf("%d\n", sum);
	return 0;
}
