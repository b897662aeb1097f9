/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * jitkinds KIND DIR: a JIT compiler with a jitdump in DIR, which does what compilers do that one
 * would not expect. Each function that it makes runs a loop and returns; what it should be called
 * is its name in the jitdump or perf map. It prints how many instructions of which name ran.
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLACE ((uint8_t *)0x10000000)

static const char *dir;
static uint64_t n_noted;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Begin a jitdump in the open file, and map it. */
static int begin_in(int fd)
{
	const struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} head = { 0x4a695444, 1, sizeof(head), 62, 0, (uint32_t)getpid(), now_ns(), 0 };

	need(fd >= 0, "jitdump");
	/* Some map it first, while it is empty. */
	need(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED, "mmap");
	need(write(fd, &head, sizeof(head)) == sizeof(head), "write");
	return fd;
}

static int begin(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return begin_in(open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
}

static int begin_usual(void)
{
	char name[32];

	snprintf(name, sizeof(name), "jit-%d.dump", (int)getpid());
	return begin(name);
}

/* mov ecx, N; loop: dec ecx; jnz loop; ret: 2 N + 2 instructions */
#define CODE_SIZE 10

static void emit(uint8_t *at, uint32_t n)
{
	static const uint8_t code[CODE_SIZE] = { 0xb9, 0, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };

	memcpy(at, code, sizeof(code));
	memcpy(at + 1, &n, sizeof(n));
}

static void note(int fd, const char *name, const uint8_t *at, const uint8_t *code)
{
	const struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, address, code_size, index;
	} head = { 0,
		   (uint32_t)(sizeof(head) + strlen(name) + 1 + CODE_SIZE),
		   now_ns(),
		   (uint32_t)getpid(),
		   (uint32_t)syscall(SYS_gettid),
		   (uintptr_t)at,
		   (uintptr_t)at,
		   CODE_SIZE,
		   n_noted++ };
	uint8_t bytes[256];

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), name, strlen(name) + 1);
	memcpy(bytes + sizeof(head) + strlen(name) + 1, code, CODE_SIZE);
	need(write(fd, bytes, head.size) == (ssize_t)head.size, "write");
}

static void make(int fd, const char *name, uint8_t *at, uint32_t n)
{
	emit(at, n);
	note(fd, name, at, at);
}

static void run(const char *name, const uint8_t *at, uint32_t n)
{
	((void (*)(void))(uintptr_t)at)();
	printf("%u %s\n", 2 * n + 2, name);
}

static uint8_t *get_memory(int flags)
{
	uint8_t *m = mmap(PLACE, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC,
			  flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	need(m != MAP_FAILED, "mmap");
	return m;
}

static void finish_child(void)
{
	int status;

	need(wait(&status) > 0 && status == 0, "child");
}

/* A child writes into the dump of its parent. In private memory both use the same place. */
static void fork_with(int flags, int is_shared)
{
	const int fd = begin_usual();
	uint8_t *m = get_memory(flags);

	make(fd, "before", m, 10);
	run("before", m, 10);
	fflush(stdout);
	if (fork() == 0) {
		run("before", m, 10);
		make(fd, "of_child", m + 64, 20);
		run("of_child", m + 64, 20);
		exit(0);
	}
	finish_child();
	if (is_shared)
		run("of_child", m + 64, 20);
	make(fd, "of_parent", m + (is_shared ? 128 : 64), 30);
	run("of_parent", m + (is_shared ? 128 : 64), 30);
}

/* Another program of the process begins the same file anew. */
static void exec_anew(const char *self, int round)
{
	const int fd = begin_usual();
	uint8_t *m = get_memory(MAP_PRIVATE);
	char kind[16], name[16];

	snprintf(kind, sizeof(kind), "exec%d", round + 1);
	snprintf(name, sizeof(name), "round%d", round);
	make(fd, name, m, (uint32_t)round * 10);
	/* What the first one noted is lost. */
	run(round < 2 ? "-" : name, m, (uint32_t)round * 10);
	fflush(stdout);
	if (round < 2)
		execl(self, self, kind, dir, NULL);
}

static void note_other_bytes(void)
{
	const int fd = begin_usual();
	uint8_t *m = get_memory(MAP_PRIVATE), noted[CODE_SIZE];

	emit(m, 10);
	memset(noted, 0x90, sizeof(noted));
	note(fd, "salted", m, noted);
	run("salted", m, 10);
}

static void close_in_child(void)
{
	const struct {
		uint32_t id, size;
		uint64_t time;
	} record = { 3, sizeof(record), now_ns() };
	const int fd = begin_usual();
	uint8_t *m = get_memory(MAP_PRIVATE);

	make(fd, "before", m, 10);
	fflush(stdout);
	if (fork() == 0) {
		need(write(fd, &record, sizeof(record)) == sizeof(record), "write");
		_exit(0);
	}
	finish_child();
	run("before", m, 10);
	make(fd, "after", m + 64, 20);
	run("after", m + 64, 20);
}

static void use_two(void)
{
	const int first = begin("one.jit"), second = begin_usual();
	uint8_t *m = get_memory(MAP_PRIVATE);
	char path[64];
	FILE *map;

	make(first, "of_first", m, 10);
	make(second, "of_second", m + 64, 20);
	emit(m + 128, 30);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	need(map && fprintf(map, "%lx %x of_map\n", (unsigned long)(m + 128), CODE_SIZE) > 0 &&
		 fclose(map) == 0,
	     path);
	run("of_first", m, 10);
	run("of_second", m + 64, 20);
	run("of_map", m + 128, 30);
}

/* Code in a file that is no ELF file; then it is changed in place. */
static void execute_image(void)
{
	char path[512];
	uint8_t page[4096];
	uint8_t *m;
	int fd;

	snprintf(path, sizeof(path), "%s/image", dir);
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
	memset(page, 0xcc, sizeof(page));
	emit(page + 64, 10);
	need(fd >= 0 && write(fd, page, sizeof(page)) == (ssize_t)sizeof(page), path);
	m = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 0);
	need(m != MAP_FAILED, "mmap");
	run("-", m + 64, 10);
	emit(m + 64, 20);
	run("-", m + 64, 20);
}

/* A dump without a name, in memory; and one that is unlinked at once. */
static void hide(int is_memfd)
{
	char path[512];
	uint8_t *m = get_memory(MAP_PRIVATE);
	int fd;

	snprintf(path, sizeof(path), "%s/jit-hidden", dir);
	fd = begin_in(is_memfd ? memfd_create("jit", MFD_CLOEXEC)
			       : open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	make(fd, "hidden", m, 10);
	run("hidden", m, 10);
	fflush(stdout);
	usleep(500000);
	if (!is_memfd)
		need(unlink(path) == 0, path);
}

/* The program moves code of its own into memory at the same addresses, for large pages. */
__attribute__((noinline, noipa, aligned(4096), section(".moved"))) static void moved(void)
{
	__asm__ volatile("mov $10, %%ecx\n1: dec %%ecx\n jnz 1b" ::: "ecx", "cc");
}

__attribute__((noinline, noipa, aligned(4096), section(".moved"))) static void moved_end(void)
{
	__asm__ volatile("nop");
}

static void move_code(void)
{
	uint8_t *at = (uint8_t *)(uintptr_t)moved, copy[4096];

	need((uintptr_t)moved_end == (uintptr_t)at + sizeof(copy), "alignment");
	moved_end();
	run("moved", at, 10);
	memcpy(copy, at, sizeof(copy));
	need(mmap(at, sizeof(copy), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0) == at &&
		 memcpy(at, copy, sizeof(copy)) &&
		 mprotect(at, sizeof(copy), PROT_READ | PROT_EXEC) == 0,
	     "move");
	run("moved", at, 10);
}

int main(int argc, char **argv)
{
	const char *kind = argc == 3 ? argv[1] : "";

	if (argc != 3) {
		fprintf(stderr, "usage: jitkinds KIND DIR\n");
		return 2;
	}
	dir = argv[2];
	if (strcmp(kind, "shared") == 0)
		fork_with(MAP_SHARED, 1);
	else if (strcmp(kind, "private") == 0)
		fork_with(MAP_PRIVATE, 0);
	else if (strcmp(kind, "exec1") == 0)
		exec_anew(argv[0], 1);
	else if (strcmp(kind, "exec2") == 0)
		exec_anew(argv[0], 2);
	else if (strcmp(kind, "salted") == 0)
		note_other_bytes();
	else if (strcmp(kind, "close") == 0)
		close_in_child();
	else if (strcmp(kind, "two") == 0)
		use_two();
	else if (strcmp(kind, "image") == 0)
		execute_image();
	else if (strcmp(kind, "large") == 0)
		move_code();
	else if (strcmp(kind, "memfd") == 0)
		hide(1);
	else if (strcmp(kind, "unlinked") == 0)
		hide(0);
	else
		need(0, kind);
	return 0;
}
