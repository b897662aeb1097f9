/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A JIT compiler that names its code in /tmp/perf-PID.map: mapnames MODE. Functions run 100 times
 * and have 2 N + 3 instructions, so 100 and 200 are the N of a and b. It prints what its map is.
 *
 *   jvm     a and b, in a map written at the end, with 0x before the numbers
 *   reuse   a; then b where a was
 *   append  a; then, when it has executed itself, b where a was, whose line is appended
 *   fork    a, and b in the child, which has no map
 *   child   a, and b in the child, which has a map and mapped no memory
 *   end     a; and b, in a last line without its end
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *how = "w";
static const char *format = "%lx %x %s\n";
static uint8_t *memory;

/* mov $n, %ecx; 1: dec %ecx; jnz 1b; mov $n, %eax; ret */
static void make(uint8_t *at, uint32_t n)
{
	uint8_t code[] = { 0xb9, 0, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xb8, 0, 0, 0, 0, 0xc3 };

	memcpy(code + 1, &n, 4);
	memcpy(code + 10, &n, 4);
	memcpy(at, code, sizeof(code));
}

static void run(uint8_t *at)
{
	for (int i = 0; i < 100; i++)
		((int (*)(void))at)();
}

static void name(uint8_t *at, const char *name_of_it)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, how);
	if (!f)
		exit(2);
	fprintf(f, format, (unsigned long)at, 15, name_of_it);
	(void)fclose(f);
	how = "a";
	printf("%s\n", path);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	memory = mmap((void *)0x10000000, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 2;
	if (strcmp(mode, "jvm") == 0)
		format = "0x%016lx 0x%08x %s\n";
	if (strcmp(mode, "again") == 0) {
		how = "a";
		make(memory, 200);
		run(memory);
		name(memory, "b");
		return 0;
	}
	make(memory, 100);
	run(memory);
	name(memory, "a");
	if (strcmp(mode, "append") == 0) {
		execl("/proc/self/exe", argv[0], "again", NULL);
		execl(argv[0], argv[0], "again", NULL);
		return 2;
	}
	if (strcmp(mode, "fork") == 0 || strcmp(mode, "child") == 0) {
		make(memory + 4096, 200);
		if (mode[0] == 'f')
			name(memory + 4096, "b");
		if (fork() > 0) {
			wait(NULL);
			return 0;
		}
		if (mode[0] == 'c') {
			how = "w";
			name(memory + 4096, "b");
		}
		run(memory + 4096);
		return 0;
	}
	if (strcmp(mode, "reuse") != 0)
		memory += 4096;
	if (strcmp(mode, "end") == 0)
		format = "%lx %x %s, whose name goes on";
	make(memory, 200);
	run(memory);
	name(memory, "b");
	return 0;
}
