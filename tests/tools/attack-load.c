/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * attack-load KIND hostile|honest DIRECTORY: the same amount of work, every two seconds until it is
 * killed, either as a hostile program arranges it, or as ordinary programs do:
 *
 *	pages	 20,000 pages of code are written and made executable one by one; no two side by
 *		 side, or all side by side, as a JIT compiler has them
 *	files	 6,000 new files of 4 KiB are mapped: by one process, or by 60 that have 100 each
 *	mappings 60,000 mappings of one file, by one process, or by 60
 *	names	 20,000 new names of one thread, with bytes that no terminal shows; or as many
 *		 ordinary ones of 20 threads
 *	dirty	 a file of 1 GiB in DIRECTORY is written again and again; and left to the kernel, or
 *		 brought to the disk after each 16 MiB
 *
 * The processes keep what they mapped until the next round. It prints "round" after each.
 */

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE     4096ul
#define ROUND_NS 2000000000l

#define PAGES    20000u
#define FILES    6000u
#define MAPPINGS 60000u
#define NAMES    20000u
#define DIRTY    ((size_t)1 << 30)

#define SHARERS 60u /* honest processes */

static bool hostile;
static const char *directory;
static unsigned round_no;

/* --- what one process does: its @n parts from @first on -------------------------------------- */

static void pages(unsigned first, unsigned n)
{
	const size_t stride = hostile ? 2 * PAGE : PAGE;
	uint8_t *const heap = mmap(NULL, n * stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)first;
	if (heap == MAP_FAILED)
		err(1, "mmap");
	for (unsigned i = 0; i < n; i++) {
		uint8_t *const page = heap + i * stride;

		if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
			err(1, "mprotect");
		memset(page, 0xc3, PAGE);
		memcpy(page + 1, &i, sizeof(i));
		if (mprotect(page, PAGE, PROT_READ | PROT_EXEC) < 0)
			err(1, "mprotect");
	}
}

static int open_file(unsigned i)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/file.%u", directory, i);
	fd = open(path, O_RDWR | O_CREAT, 0755);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void make_files(void)
{
	uint8_t bytes[PAGE] = ELFMAG;

	for (unsigned i = 0; i < FILES; i++) {
		const int fd = open_file(i);

		memcpy(bytes + PAGE - 8, &i, sizeof(i));
		memcpy(bytes + PAGE - 4, &round_no, sizeof(round_no));
		if (pwrite(fd, bytes, PAGE, 0) != (ssize_t)PAGE)
			err(1, "pwrite");
		(void)close(fd);
	}
}

static void map_code(int fd)
{
	if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		err(1, "mmap");
}

static void files(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const int fd = open_file(i);

		map_code(fd);
		(void)close(fd);
	}
}

static void mappings(unsigned first, unsigned n)
{
	const int fd = open("/proc/self/exe", O_RDONLY);

	(void)first;
	if (fd < 0)
		err(1, "open");
	/* Two side by side do not become one: each begins at the file's first byte. */
	for (unsigned i = 0; i < n; i++)
		map_code(fd);
	(void)close(fd);
}

static void names(unsigned first, unsigned n)
{
	char name[16];

	for (unsigned i = first; i < first + n; i++) {
		(void)snprintf(name, sizeof(name), hostile ? "\033]0;\n\t%u" : "worker-%u",
			       hostile ? round_no * NAMES + i : i % 4);
		(void)prctl(PR_SET_NAME, name);
	}
}

static void dirty(unsigned first, unsigned n)
{
	static uint8_t bytes[1 << 20];
	static int fd = -1;

	(void)first;
	if (fd < 0) {
		char path[4096];

		(void)snprintf(path, sizeof(path), "%s/dirty", directory);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (fd < 0)
			err(1, "dirty");
	}
	memset(bytes, (int)round_no, sizeof(bytes));
	for (unsigned i = 0; i < n; i++)
		if (pwrite(fd, bytes, sizeof(bytes), (off_t)(i * sizeof(bytes))) !=
			(ssize_t)sizeof(bytes) ||
		    (!hostile && i % 16 == 15 && fdatasync(fd) < 0))
			err(1, "dirty");
}

/* --- rounds ----------------------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	void (*work)(unsigned first, unsigned n);
	unsigned n; /* parts */
	unsigned n_honest;
} kinds[] = {
	{ "pages", pages, PAGES, 1 },
	{ "files", files, FILES, SHARERS },
	{ "mappings", mappings, MAPPINGS, SHARERS },
	{ "names", names, NAMES, 20 },
	{ "dirty", dirty, DIRTY >> 20, 1 },
};

/* The process works, says so, and keeps what it has. */
static pid_t start_worker(const struct kind *kind, unsigned first, unsigned n)
{
	int done[2];
	char c = 0;
	pid_t pid;

	if (pipe(done) < 0)
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		kind->work(first, n);
		if (write(done[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			(void)usleep(100000); /* it runs, so a snapshot is of it */
	}
	(void)close(done[1]);
	if (read(done[0], &c, 1) != 1)
		errx(1, "%s: a process failed", kind->name);
	(void)close(done[0]);
	return pid;
}

static void work_round(const struct kind *kind)
{
	static pid_t workers[SHARERS];
	const unsigned n = hostile ? 1 : kind->n_honest;

	if (kind->work == files)
		make_files();
	for (unsigned i = 0; i < n; i++) {
		if (workers[i] > 0) {
			(void)kill(workers[i], SIGKILL);
			(void)waitpid(workers[i], NULL, 0);
		}
		workers[i] = start_worker(kind, i * (kind->n / n), kind->n / n);
	}
}

int main(int argc, char **argv)
{
	const struct kind *kind = kinds;
	struct timespec next;

	if (argc != 4)
		errx(2, "Usage: attack-load KIND hostile|honest DIRECTORY");
	while (strcmp(kind->name, argv[1]) != 0)
		if (++kind == kinds + sizeof(kinds) / sizeof(*kinds))
			errx(2, "%s: no such kind", argv[1]);
	hostile = strcmp(argv[2], "hostile") == 0;
	directory = argv[3];
	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	for (round_no = 1;; round_no++) {
		work_round(kind);
		(void)printf("round\n");
		(void)fflush(stdout);
		next.tv_sec += ROUND_NS / 1000000000;
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
