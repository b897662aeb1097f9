/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Decodes seeded mutations of a snapshot by both engines: none may crash, hang, want much memory,
 * print what is not justified (tests/lib/follow.h), or have an account that does not add up.
 *
 *	mutate [-n COUNT] [-s FIRST-SEED] [-k DIRECTORY] SNAPSHOT
 *
 * What went wrong is kept in DIRECTORY, as data.SEED. The exit status is 1 if anything did.
 */

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/base.h"
#include "decoder/util/mapfile.h"
#include "tests/lib/copydir.h"
#include "tests/lib/mutation.h"
#include "tests/lib/trial.h"
#include "tests/lib/walk.h"

/* gcc tells by __SANITIZE_ADDRESS__, clang in its own way. */
#ifdef __has_feature
#define HAS_ASAN __has_feature(address_sanitizer)
#else
#define HAS_ASAN 0
#endif

#define BATCH      64 /* trials a process makes */
#define TIME_MAX_S 60 /* of one trial; the largest takes 0.2 s, sanitized on a busy machine 10 */
#define MEMORY_MAX (UINT64_C(2) << 30)

static const char *const engines[] = { "block", "insn" };

/* Shared with the processes that make the trials. */
struct tally {
	uint64_t seed;
	const char *engine;
	uint64_t n_trials, n_refused, n_with_gaps, n_insns, n_bad;
};

struct command {
	const char *snapshot, *keep;
	uint64_t first, n;
	char dir[64];
	struct mapfile data;
	struct walk walk;
	struct mutation mutation;
	struct tally *tally;
};

static void keep(const struct command *c, uint64_t seed)
{
	char name[64];

	if (!c->keep)
		return;
	mutation_make((struct mutation *)(uintptr_t)&c->mutation, c->data.bytes, c->data.size,
		      &c->walk, seed);
	(void)snprintf(name, sizeof(name), "data.%" PRIu64, seed);
	if (copydir_write(c->keep, name, c->mutation.bytes, c->mutation.size) < 0)
		error(0, errno, "%s/%s", c->keep, name);
}

static void try(struct command *c, uint64_t seed, const char *engine)
{
	const struct itimerval limit = { .it_value.tv_sec = TIME_MAX_S };
	_cleanup_(freep) char *text = NULL;
	struct tally *tally = c->tally;
	struct trial trial = {};
	size_t size;
	FILE *faults = open_memstream(&text, &size);
	int r;

	tally->engine = engine;
	(void)setitimer(ITIMER_REAL, &limit, NULL);
	r = trial_run(c->dir, engine, true, false, faults, &trial);
	(void)fclose(faults);
	tally->n_trials++;
	if (r < 0) {
		trial.n_faults++;
		printf("%s, seed %" PRIu64 " (%s): %s\n", engine, seed, c->mutation.what,
		       strerror(-r));
	}
	if (trial.refusal)
		tally->n_refused++;
	tally->n_with_gaps += trial.n_gaps > 0;
	tally->n_insns += trial.n_insns;
	if (trial.n_faults > 0) {
		tally->n_bad++;
		printf("%s, seed %" PRIu64 " (%s):\n%s", engine, seed, c->mutation.what, text);
	}
	trial_deinit(&trial);
}

/* In a process of its own. */
_Noreturn static void try_batch(struct command *c, uint64_t seed, uint64_t end)
{
#if !defined(__SANITIZE_ADDRESS__) && !HAS_ASAN
	const struct rlimit limit = { MEMORY_MAX, MEMORY_MAX };

	(void)setrlimit(RLIMIT_AS, &limit);
#endif
	for (; seed < end; seed++) {
		c->tally->seed = seed;
		mutation_make(&c->mutation, c->data.bytes, c->data.size, &c->walk, seed);
		if (copydir_write(c->dir, "data", c->mutation.bytes, c->mutation.size) < 0)
			error(1, errno, "%s/data", c->dir);
		for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
			const uint64_t n_bad = c->tally->n_bad;

			try(c, seed, engines[i]);
			if (c->tally->n_bad > n_bad)
				keep(c, seed);
		}
	}
	mapfile_deinit(&c->data);
	walk_deinit(&c->walk);
	free(c->mutation.bytes);
	exit(0); /* not _exit: what leaked is to be seen */
}

static void run(struct command *c)
{
	for (uint64_t seed = c->first; seed < c->first + c->n;) {
		const uint64_t left = c->first + c->n - seed;
		int status;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid < 0)
			error(1, errno, "fork");
		if (pid == 0)
			try_batch(c, seed, seed + (left < BATCH ? left : BATCH));
		if (waitpid(pid, &status, 0) < 0)
			error(1, errno, "waitpid");
		seed += left < BATCH ? left : BATCH;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;

		printf("%s, seed %" PRIu64 ": %s (%d)\n", c->tally->engine, c->tally->seed,
		       WIFEXITED(status)             ? "exit status"
		       : WTERMSIG(status) == SIGALRM ? "too slow"
						     : "killed by a signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		c->tally->n_bad++;
		keep(c, c->tally->seed);
		seed = c->tally->seed + 1;
	}
}

int main(int argc, char **argv)
{
	struct command c = { .first = 1, .n = 1000, .dir = "/tmp/ptd-mutate-XXXXXX" };
	char path[4096];
	int option, r;

	while ((option = getopt(argc, argv, "n:s:k:")) != -1) {
		if (option == 'n')
			c.n = strtoull(optarg, NULL, 0);
		else if (option == 's')
			c.first = strtoull(optarg, NULL, 0);
		else if (option == 'k')
			c.keep = optarg;
		else
			return 2;
	}
	if (argc - optind != 1)
		error(2, 0, "usage: mutate [-n COUNT] [-s FIRST-SEED] [-k DIRECTORY] SNAPSHOT");
	c.snapshot = argv[optind];

	(void)snprintf(path, sizeof(path), "%s/data", c.snapshot);
	r = mapfile_init(&c.data, AT_FDCWD, path);
	if (r == 0)
		r = walk_read(c.data.bytes, c.data.size, &c.walk);
	if (r < 0)
		error(2, -r, "%s", path);
	c.mutation.size_max = c.data.size;
	c.mutation.bytes = malloc(c.data.size);
	c.tally =
	    mmap(NULL, sizeof(*c.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!c.mutation.bytes || c.tally == MAP_FAILED || !mkdtemp(c.dir) || rmdir(c.dir) < 0)
		error(2, errno, "cannot begin");
	r = copydir_new(c.snapshot, c.dir);
	if (r < 0)
		error(2, -r, "%s", c.dir);

	run(&c);
	copydir_remove(c.dir);
	mapfile_deinit(&c.data);
	walk_deinit(&c.walk);
	free(c.mutation.bytes);
	printf("%" PRIu64 " decodings: %" PRIu64 " refused, %" PRIu64 " with gaps, %" PRIu64
	       " instructions, %" PRIu64 " wrong\n",
	       c.tally->n_trials, c.tally->n_refused, c.tally->n_with_gaps, c.tally->n_insns,
	       c.tally->n_bad);
	return c.tally->n_bad > 0 || c.tally->n_insns == 0;
}
