/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A JIT that does with its code what JITs do, notes it in a jitdump, and calls all of it: jit DIR
 * writes DIR/jit-PID.dump, and what its memory holds at the end to DIR/PID-ADDR.
 *
 * Each function has a loop, so that it is recognised by how long it runs, and adds a number of its
 * own to a sum; the program ends with status 1 if the sum is wrong. DIR/calls has the calls: for
 * each its thread, + or -, and the name that the function has then, if it has one: once half was
 * noted over its end, what is left of alpha has none.
 *
 *	alpha	at 0, noted, then called
 *	beta	at 256, called, then noted, then called again
 *	alpha	moved to 512
 *	gamma	at 0, where alpha was
 *	patch	gamma's number changed in place: another LOAD of the same range
 *	half	at 526, over the last instruction of moved alpha, which then runs into it
 *	page	in memory that is mapped anew, at an address that was used by "old"
 *	many	100 functions, one after the other, at the same four addresses
 *	last	noted, but the dump is cut off in its record: it runs with no name
 *
 * With a second argument the dump has a CLOSE instead, after which page is called again, and keeps
 *its name. If it is "noted", beta is not called before it is noted.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 50

/* mov eax, NUMBER; mov ecx, ROUNDS; loop: dec ecx; jnz loop; ret */
static const uint8_t code[] = { 0xb8, 0, 0,    0,    0,    0xb9, ROUNDS, 0,
				0,    0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };

static FILE *dump;
static uint8_t *memory;
static size_t page_size;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void put(const void *bytes, size_t size)
{
	if (fwrite(bytes, size, 1, dump) != 1)
		die("fwrite");
}

static void put32(uint32_t n)
{
	put(&n, sizeof(n));
}

static void put64(uint64_t n)
{
	put(&n, sizeof(n));
}

static void record(uint32_t id, size_t size)
{
	put32(id);
	put32((uint32_t)(16 + size));
	put64(now());
}

static void ids(void)
{
	put32((uint32_t)getpid());
	put32((uint32_t)syscall(SYS_gettid));
}

static FILE *calls;

static void begin_log(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/calls", dir);
	calls = fopen(path, "w");
	if (!calls)
		die(path);
}

static void begin_dump(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, (int)getpid());
	dump = fopen(path, "w+");
	if (!dump)
		die(path);
	put32(0x4a695444);
	put32(1);
	put32(40);
	put32(62);
	put32(0);
	put32((uint32_t)getpid());
	put64(now());
	put64(0);
	fflush(dump);
	if (mmap(NULL, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) ==
	    MAP_FAILED)
		die("mmap of the dump");
}

static uint64_t n_noted;

static void load(uint64_t address, const char *name)
{
	record(0, 40 + strlen(name) + 1 + sizeof(code));
	ids();
	put64(0);
	put64(address);
	put64(sizeof(code));
	put64(++n_noted);
	put(name, strlen(name) + 1);
	put((const void *)(uintptr_t)address, sizeof(code));
	fflush(dump);
}

static void note(size_t at, const char *name)
{
	load((uint64_t)(uintptr_t)memory + at, name);
}

static void note_move(size_t from, size_t to, uint64_t index)
{
	record(1, 48);
	ids();
	put64((uint64_t)(uintptr_t)memory + to);
	put64((uint64_t)(uintptr_t)memory + from);
	put64((uint64_t)(uintptr_t)memory + to);
	put64(sizeof(code));
	put64(index);
	fflush(dump);
}

static void protect(int prot)
{
	if (mprotect(memory, page_size, prot) < 0)
		die("mprotect");
}

static void make_at(uint8_t *at, uint32_t number)
{
	protect(PROT_READ | PROT_WRITE);
	memcpy(at, code, sizeof(code));
	memcpy(at + 1, &number, sizeof(number));
	protect(PROT_READ | PROT_EXEC);
}

static void make(size_t at, uint32_t number)
{
	make_at(memory + at, number);
}

static uint64_t sum;

/* Call the function, whose name the dump says now, or will say next; NULL: never. */
static void call(size_t at, const char *name)
{
	uint32_t (*function)(void);

	*(void **)&function = memory + at;
	sum += function();
	if (name)
		fprintf(calls, "%d +%s\n%d -%s\n", (int)getpid(), name, (int)getpid(), name);
}

static void remap(void)
{
	if (munmap(memory, page_size) < 0 ||
	    mmap(memory, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) != memory)
		die("mmap anew");
}

/* Cut the file where the JIT, if it were still alive, would not yet have written on. */
static void cut_off(void)
{
	const long size = ftell(dump);

	if (size < 0 || ftruncate(fileno(dump), size - (long)sizeof(code) - 3) < 0)
		die("ftruncate");
}

/* As a recorder would, while the program runs. */
static void keep_memory(const char *dir)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d-%lx", dir, (int)getpid(), (unsigned long)memory);
	f = fopen(path, "w");
	if (!f || fwrite(memory, page_size, 1, f) != 1 || fclose(f) != 0)
		die(path);
}

int main(int argc, char **argv)
{
	const bool noted = argc == 3 && strcmp(argv[2], "noted") == 0;
	uint64_t expected = 0;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: jit DIR [close | noted]\n");
		return 2;
	}
	page_size = (size_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	begin_log(argv[1]);
	begin_dump(argv[1]);

	make(0, 1);
	note(0, "alpha");
	call(0, "alpha");
	make(256, 20);
	if (!noted)
		call(256, "beta");
	note(256, "beta");
	call(256, "beta");
	make(512, 1);
	note_move(0, 512, 1);
	call(512, "alpha");
	make(0, 300);
	note(0, "gamma");
	call(0, "gamma");
	make(0, 4000);
	note(0, "patch");
	call(0, "patch");
	call(512, "alpha");
	make(526, 50000);
	note(526, "half");
	call(526, "half");
	call(512, "half");
	expected += 1 + (noted ? 20 : 40) + 1 + 300 + 4000 + 1 + 50000 + 50000;

	make(1024, 600000);
	note(1024, "old");
	call(1024, "old");
	remap();
	make(1024, 7000000);
	note(1024, "page");
	call(1024, "page");
	expected += 600000 + 7000000;

	for (uint32_t i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "many%u", (unsigned int)i);
		make(2048 + 32 * (i % 4), i);
		note(2048 + 32 * (i % 4), name);
		call(2048 + 32 * (i % 4), name);
		expected += i;
	}

	if (argc == 3) {
		record(3, 0);
		fflush(dump);
		call(1024, NULL);
		expected += 7000000;
	} else {
		make(3072, 80000000);
		note(3072, "last");
		call(3072, NULL);
		expected += 80000000;
		cut_off();
	}
	if (fclose(calls) != 0)
		die("calls");
	keep_memory(argv[1]);
	/* ptd asks whose the dump is, which nobody knows any more once this has ended. */
	usleep(300000);

	printf("%llu\n", (unsigned long long)sum);
	return sum != expected;
}
