/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/prove/jitted.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CODE      ((void *)0x20000000)
#define CODE_SIZE 65536
#define SLOT      64

struct header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};

struct load {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, address, code_size, index;
	char name[8];
	uint8_t code[SLOT];
};

/* By the system call, since each process has its vDSO elsewhere. */
static uint64_t now_ns(void)
{
	struct timespec now;

	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void append(const struct jitted *j, const void *bytes, size_t size)
{
	if (write(j->dump_fd, bytes, size) != (ssize_t)size)
		err(1, "the jitdump");
}

void jitted_init(struct jitted *jitted)
{
	const struct header header = { .magic = 0x4a695444,
				       .version = 1,
				       .size = sizeof(header),
				       .machine = 62,
				       .pid = (uint32_t)getpid(),
				       .time = now_ns() };
	const char *directory = getenv("TMPDIR");
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/jit-%d.dump", directory ? directory : "/tmp",
		       (int)getpid());
	jitted->dump_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (jitted->dump_fd < 0)
		err(1, "%s", path);
	append(jitted, &header, sizeof(header));
	jitted->code = mmap(CODE, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	/* The mapping tells who records where the jitdump is. */
	if (jitted->code != CODE ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, jitted->dump_fd, 0) == MAP_FAILED)
		err(1, "cannot map code");
}

jitted_fn *jitted_make(struct jitted *jitted, uint32_t n)
{
	/* endbr64; lea n(%rdi),%rax; ret */
	const uint8_t code[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x87, (uint8_t)n, 0, 0, 0, 0xc3
	};
	uint8_t *at = jitted->code + (size_t)n * SLOT;
	struct load load = { .size = sizeof(load),
			     .time = now_ns(),
			     .pid = (uint32_t)getpid(),
			     .tid = (uint32_t)gettid(),
			     .vma = (uint64_t)at,
			     .address = (uint64_t)at,
			     .code_size = SLOT,
			     .index = n,
			     .name = { 'a', 'd', 'd', (char)('a' + n) } };

	/* memcpy() is another function on each kind of CPU. */
	for (size_t i = 0; i < sizeof(code); i++)
		((volatile uint8_t *)at)[i] = ((volatile uint8_t *)load.code)[i] = code[i];
	append(jitted, &load, sizeof(load));
	return (jitted_fn *)at;
}
