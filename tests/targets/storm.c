/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * storm DIRECTORY: until it gets SIGTERM, makes processes that end soon, some at a time, so that no
 * CPU rests, but others go first. In turn they
 *
 *	only compute;
 *	execute this program again;
 *	have threads;
 *	map this program's code as often as their name, "maps-N", says, and unmap it;
 *	execute a program that has just been made in DIRECTORY, with a build-id of its own, and is
 *	gone after it.
 *
 * It prints how many there were.
 *
 * storm burst N: maps and unmaps this program's code N times, as quickly as it can, so that no
 * record says the same as another of the same mapping.
 *
 * storm repeat N: the same, but each record says the same as the one before.
 *
 * With ATTACK_IDLE in the environment these two map it to be read only: there is no record then.
 */

#define _GNU_SOURCE

#include <elf.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_A_TIME 6
#define N_THREADS 3
#define MAPS_MAX  8u

#define SELF "/proc/self/exe"

static volatile sig_atomic_t over;
static const char *directory;
static uint8_t *self; /* this program */
static size_t self_size;
static size_t id_at; /* of its build-id */

static void on_over(int signal)
{
	(void)signal;
	over = 1;
}

static volatile uint64_t sink;

static void compute(uint64_t seed)
{
	uint64_t x = seed;

	for (int i = 0; i < 2000; i++)
		x = x & 1 ? 3 * x + 1 : x / 2 + seed;
	sink = x;
}

static void *compute_in_thread(void *arg)
{
	compute((uintptr_t)arg);
	return NULL;
}

static void have_threads(void)
{
	pthread_t threads[N_THREADS];

	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, compute_in_thread, (void *)i) != 0)
			_exit(1);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Private mappings of whole pages: one record each. */
static void map_code(uint64_t i)
{
	const unsigned n = i % MAPS_MAX + 1;
	const int fd = open(SELF, O_RDONLY | O_CLOEXEC);
	char name[16];
	void *maps[MAPS_MAX];

	(void)snprintf(name, sizeof(name), "maps-%u", n);
	prctl(PR_SET_NAME, name);
	for (unsigned k = 0; k < n; k++) {
		maps[k] = mmap(NULL, self_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (maps[k] == MAP_FAILED)
			_exit(1);
		compute(i);
	}
	for (unsigned k = 0; k < n; k++)
		munmap(maps[k], self_size);
}

static int burst(int n, bool repeats)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int prot = getenv("ATTACK_IDLE") ? PROT_READ : PROT_READ | PROT_EXEC;
	const int fd = open(SELF, O_RDONLY | O_CLOEXEC);
	void *map;

	for (int i = 0; i < n; i++) {
		/* All of it and a part of it lie over each other. */
		const size_t size = repeats || i % 2 ? self_size : page;

		map = mmap(NULL, size, prot, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			error(1, errno, SELF);
		munmap(map, size);
	}
	return 0;
}

static void execute(const char *path)
{
	execl(path, "leaf", NULL);
	_exit(127);
}

static void fresh_path(uint64_t i, char *ret_path, size_t size)
{
	(void)snprintf(ret_path, size, "%s/fresh-%" PRIu64, directory, i);
}

/* By the parent: a child that is forked meanwhile would hold it open for writing. */
static void make_fresh(uint64_t i)
{
	char path[4096];
	int fd;

	fresh_path(i, path, sizeof(path));
	memcpy(self + id_at, &i, sizeof(i));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, self, self_size) != (ssize_t)self_size)
		error(1, errno, "%s", path);
	close(fd);
}

static void execute_fresh(uint64_t i)
{
	char path[4096];
	const pid_t pid = fork();

	fresh_path(i, path, sizeof(path));
	if (pid == 0)
		execute(path);
	waitpid(pid, NULL, 0);
	unlink(path);
}

static void start(uint64_t i)
{
	pid_t pid;

	if (i % 10 == 9)
		make_fresh(i);
	pid = fork();
	if (pid < 0)
		error(1, errno, "fork");
	if (pid > 0)
		return;
	switch (i % 10) {
	case 0:
	case 3:
	case 6:
		execute(SELF);
		break;
	case 4:
		have_threads();
		break;
	case 2:
	case 7:
		map_code(i / 5);
		break;
	case 9:
		execute_fresh(i);
		break;
	default:
		compute(i);
	}
	_exit(0);
}

/* The build-id's note: size of name, of ID, type, name. */
static void find_build_id(void)
{
	static const uint32_t note[] = { sizeof(ELF_NOTE_GNU), 20, NT_GNU_BUILD_ID };
	uint8_t bytes[sizeof(note) + sizeof(ELF_NOTE_GNU)];
	const uint8_t *at;

	memcpy(bytes, note, sizeof(note));
	memcpy(bytes + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU));
	at = memmem(self, self_size, bytes, sizeof(bytes));
	if (!at)
		error(1, 0, "this program has no build-id");
	id_at = (size_t)(at - self) + sizeof(bytes);
}

static void read_self(void)
{
	const int fd = open(SELF, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		error(1, errno, SELF);
	self_size = (size_t)st.st_size;
	self = malloc(self_size);
	if (!self || read(fd, self, self_size) != (ssize_t)self_size)
		error(1, errno, SELF);
	close(fd);
}

int main(int argc, char **argv)
{
	uint64_t n = 0;
	int running = 0;

	/* As it was executed again: it stays for a moment, as programs do. */
	if (strcmp(argv[0], "leaf") == 0) {
		for (uint64_t i = 0; i < 20; i++)
			compute(i);
		nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
		return 0;
	}
	read_self();
	if (argc == 3 && (strcmp(argv[1], "burst") == 0 || strcmp(argv[1], "repeat") == 0))
		return burst(atoi(argv[2]), argv[1][0] == 'r');
	if (argc != 2)
		error(2, 0, "usage: storm DIRECTORY");
	directory = argv[1];
	find_build_id();
	if (nice(19) < 0)
		error(1, errno, "nice");
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_over }, NULL);
	while (!over) {
		start(n++);
		running++;
		if (running == AT_A_TIME)
			running -= wait(NULL) > 0;
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	printf("%" PRIu64 " processes\n", n);
	return 0;
}
