/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Decodes seeded mutations of a snapshot, or of the inputs of golden cases, by both engines: none
 * may crash, hang, want much memory, print what is not justified (tests/lib/follow.h), or have an
 * account that does not add up. Up to the first error of either engine, both have to list the same,
 * but for a few seeds (DIFFERENT_SHARE). Two threads that decode parts have to list what one lists,
 * to the end.
 *
 *	mutate [-n COUNT] [-s FIRST-SEED] [-k DIRECTORY] SNAPSHOT | CASE…
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
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/cmd/verify.h"
#include "decoder/stream/ahead.h"
#include "tests/lib/copydir.h"
#include "tests/lib/digest.h"
#include "tests/lib/golden_input.h"
#include "tests/lib/iptversion.h"
#include "tests/lib/mutation.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/trial.h"
#include "util/mapfile.h"

#define BATCH      64 /* trials a process makes */
#define TIME_MAX_S 60 /* of one trial; the largest takes 0.2 s, sanitized on a busy machine 10 */
#define MEMORY_MAX (UINT64_C(2) << 30)

/*
 * Of broken packets libipt 2.0.5 sometimes makes something else that is also legal: it binds a
 * TIP.PGD or a second PIP to another instruction, for example. That happens to about one mutation
 * in 3000; a defect would show in more. Of few mutations one may be such a one. libipt 2.1 meets
 * broken packets elsewhere: there, times and gaps differ more often.
 */
#define DIFFERENT_SHARE       500
#define DIFFERENT_SHARE_AHEAD 25

/*
 * The packets of a golden case have one PSB or two. Those of a mutation come so often, each time
 * with later TSCs (in ticks), so that there are errors behind which decoding goes on.
 */
#define N_TIMES 7
#define LATER   (UINT64_C(1) << 16)

static const char *const engines[] = { "flow", "insn" };

/* An input that is damaged again and again. */
struct subject {
	const char *name;            /* as the user gave it */
	char dir[TEMPDIR_SIZE + 16]; /* that it is decoded from */
	const char *file;            /* of those in it, the one that is damaged */
	struct golden_input golden;
	struct ptd_options options;
	struct mapfile data; /* as it was */
	bool is_apart;       /* a limit of libipt makes the engines differ from the start */
	struct mutation_input input;
};

/* Shared with the processes that make the trials. */
struct tally {
	uint64_t seed;
	const char *engine;
	uint64_t n_trials, n_refused, n_with_gaps, n_insns, n_compared, n_different, n_bad;
	uint64_t n_parts; /* that were decoded ahead and joined */
};

struct command {
	const char *keep;
	uint64_t first, n;
	char dir[TEMPDIR_SIZE]; /* that those of the subjects are in */
	struct subject *subjects;
	size_t n_subjects;
	struct mutation mutation;
	struct tally *tally;
};

/* They take turns; who lends parts to whom differs from turn to turn. */
static struct subject *mutate(struct command *c, uint64_t seed)
{
	const uint64_t turn = seed / c->n_subjects;
	struct subject *s = &c->subjects[seed % c->n_subjects];

	mutation_make(&c->mutation, &s->input, &c->subjects[(seed + turn) % c->n_subjects].input,
		      seed);
	return s;
}

static void keep(struct command *c, uint64_t seed)
{
	char name[64];

	if (!c->keep)
		return;
	(void)mutate(c, seed);
	(void)snprintf(name, sizeof(name), "data.%" PRIu64, seed);
	if (copydir_write(c->keep, name, c->mutation.bytes, c->mutation.size) < 0)
		error(0, errno, "%s/%s", c->keep, name);
}

static void try(struct command *c, struct subject *s, uint64_t seed, const char *engine)
{
	const struct itimerval limit = { .it_value.tv_sec = TIME_MAX_S };
	_cleanup_(freep) char *text = NULL;
	struct tally *tally = c->tally;
	struct trial trial = {};
	size_t size;
	FILE *faults = open_memstream(&text, &size);
	int r;

	tally->engine = engine;
	s->options.engine = engine;
	(void)setitimer(ITIMER_REAL, &limit, NULL);
	r = trial_run(&s->options, TRIAL_NONE, faults, &trial);
	(void)fclose(faults);
	tally->n_trials++;
	if (r < 0) {
		trial.n_faults++;
		printf("%s, %s, seed %" PRIu64 " (%s): %s\n", s->name, engine, seed,
		       c->mutation.what, strerror(-r));
	}
	if (trial.refusal)
		tally->n_refused++;
	tally->n_with_gaps += trial.n_gaps > 0;
	tally->n_insns += trial.n_insns;
	if (trial.n_faults > 0) {
		tally->n_bad++;
		printf("%s, %s, seed %" PRIu64 " (%s):\n%s", s->name, engine, seed,
		       c->mutation.what, text);
	}
	trial_deinit(&trial);
}

/* What an engine lists, up to its first error. */
struct prefix {
	struct ptd_decoder *decoder;
	struct ptd_batch batch;
	bool is_over;
};

/* Return: whether execution is lost here: the engines need not find it again alike. */
static bool is_error(const struct ptd_mark *mark)
{
	return mark->kind == PTD_MARK_OUT_OF_SCOPE ||
	       (mark->kind == PTD_MARK_GAP && mark->reason != PTD_GAP_OVERFLOW);
}

static int next(void *userdata, const struct ptd_batch **ret_batch)
{
	struct prefix *p = userdata;
	const struct ptd_batch *batch;
	int r = p->is_over ? PTD_END : ptd_decoder_next(p->decoder, &batch);

	if (r != 0)
		return r;
	p->batch = *batch;
	for (size_t i = 0; i < batch->n_marks && !p->is_over; i++) {
		p->is_over = is_error(&batch->marks[i]);
		if (!p->is_over)
			continue;
		p->batch.n_marks = i;
		p->batch.n_runs = batch->marks[i].run;
	}
	*ret_batch = &p->batch;
	return 0;
}

/* Return: whether @text, a difference, says that there is no more of @engine. */
static bool is_at_end(const char *text, const char *engine)
{
	char line[64];

	(void)snprintf(line, sizeof(line), "%s goes on with:\n  the end\n", engine);
	return strstr(text, line);
}

/* Do both engines list the same, up to the first error? */
static void compare(struct command *c, struct subject *s, uint64_t seed)
{
	struct prefix prefixes[ARRAY_LEN(engines)] = {};
	struct verify_stream streams[ARRAY_LEN(engines)];
	_cleanup_(freep) char *text = NULL;
	uint64_t n_insns;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(engines) && r == 0; i++) {
		_cleanup_(freep) char *message = NULL;

		s->options.engine = engines[i];
		r = ptd_decoder_new(&s->options, &prefixes[i].decoder, &message);
		streams[i] = (struct verify_stream){ engines[i], next, &prefixes[i] };
	}
	if (r == 0)
		r = verify_streams(streams, f, &n_insns);
	(void)fclose(f);
	c->tally->n_compared += r >= 0;
	/* libipt does not give what packets right before the end of the PT say. */
	if (r == VERIFY_DIFFERENT && !(prefixes[0].is_over && is_at_end(text, engines[0])) &&
	    !is_at_end(text, engines[1])) {
		printf("%s, seed %" PRIu64 " (%s): the engines differ:\n%s", s->name, seed,
		       c->mutation.what, text);
		c->tally->n_different++;
	}
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		ptd_decoder_free(prefixes[i].decoder);
}

/* Does flow list the same, to the end, when threads decode parts from each PSB to the next? */
static void compare_parts(struct command *c, struct subject *s, uint64_t seed)
{
	struct digest alone, parts;

	c->tally->engine = "flow in parts";
	s->options.engine = "flow";
	alone = digest_of(&s->options, 1, 1);
	parts = digest_of(&s->options, 2, 1);
	c->tally->n_parts += parts.parts.n_used;
	if (parts.hash == alone.hash && parts.n_items == alone.n_items && parts.r == alone.r)
		return;
	printf("%s, seed %" PRIu64 " (%s): flow and flow in parts differ\n", s->name, seed,
	       c->mutation.what);
	c->tally->n_bad++;
}

static void forget(struct command *c)
{
	for (size_t i = 0; i < c->n_subjects; i++) {
		mapfile_deinit(&c->subjects[i].data);
		mutation_input_deinit(&c->subjects[i].input);
	}
	free(c->subjects);
	free(c->mutation.bytes);
}

/* In a process of its own. */
_Noreturn static void try_batch(struct command *c, uint64_t seed, uint64_t end)
{
#if !IS_SANITIZED
	const struct rlimit limit = { MEMORY_MAX, MEMORY_MAX };

	(void)setrlimit(RLIMIT_AS, &limit);
#endif
	for (; seed < end; seed++) {
		struct subject *s = mutate(c, seed);
		uint64_t n_bad;

		c->tally->seed = seed;
		if (copydir_write(s->dir, s->file, c->mutation.bytes, c->mutation.size) < 0)
			error(1, errno, "%s/%s", s->dir, s->file);
		n_bad = c->tally->n_bad;
		for (size_t i = 0; i < ARRAY_LEN(engines); i++)
			try(c, s, seed, engines[i]);
		if (!s->is_apart)
			compare(c, s, seed);
		compare_parts(c, s, seed);
		if (c->tally->n_bad > n_bad)
			keep(c, seed);
	}
	forget(c);
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

		printf("%s, %s, seed %" PRIu64 ": %s (%d)\n",
		       c->subjects[c->tally->seed % c->n_subjects].name, c->tally->engine,
		       c->tally->seed,
		       WIFEXITED(status)             ? "exit status"
		       : WTERMSIG(status) == SIGALRM ? "too slow"
						     : "killed by a signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		c->tally->n_bad++;
		keep(c, c->tally->seed);
		seed = c->tally->seed + 1;
	}
}

static int prepare_snapshot(struct subject *s)
{
	s->file = "data";
	s->options =
	    (struct ptd_options){ .size = sizeof(s->options), .input = s->dir, .force = true };
	return copydir_new(s->name, s->dir);
}

static int prepare_case(struct subject *s)
{
	_cleanup_(golden_freep) struct golden *golden = NULL;
	unsigned line;
	int r;

	r = golden_read(s->name, &golden, &line);
	if (r < 0)
		return r;
	golden_repeat(golden, N_TIMES, LATER);
	if (mkdir(s->dir, 0700) < 0)
		return -errno;
	r = golden_input_write(golden, s->dir, &s->golden);
	if (r < 0)
		return r;
	s->file = s->golden.data;
	s->options = s->golden.options;
	s->options.force = true;
	s->options.cpu_family = golden->cpus[0].family;
	s->options.cpu_model = golden->cpus[0].model;
	s->is_apart = golden->libipt;
	return 0;
}

static int prepare(struct command *c, size_t i, const char *name)
{
	struct subject *s = &c->subjects[i];
	char path[4096];
	struct stat st;
	bool is_dir;
	int r;

	s->name = name;
	(void)snprintf(s->dir, sizeof(s->dir), "%s/%zu", c->dir, i);
	is_dir = stat(name, &st) == 0 && S_ISDIR(st.st_mode);
	r = is_dir ? prepare_snapshot(s) : prepare_case(s);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%s", is_dir ? name : s->dir, s->file);
	r = mapfile_read(&s->data, AT_FDCWD, path);
	if (r == 0)
		r = mutation_input_init(&s->input, s->data.bytes, s->data.size, !s->options.input);
	if (r == 0 && s->data.size > c->mutation.size_max)
		c->mutation.size_max = s->data.size;
	return r;
}

int main(int argc, char **argv)
{
	struct command c = { .first = 1, .n = 1000 };
	uint64_t share;
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
	if (argc == optind)
		error(2, 0,
		      "usage: mutate [-n COUNT] [-s FIRST-SEED] [-k DIRECTORY] SNAPSHOT | CASE…");

	c.subjects = calloc((size_t)(argc - optind), sizeof(*c.subjects));
	c.tally =
	    mmap(NULL, sizeof(*c.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!c.subjects || c.tally == MAP_FAILED)
		error(2, errno, "cannot begin");
	tempdir_make("mutate", c.dir);
	for (int i = optind; i < argc; i++, c.n_subjects++) {
		r = prepare(&c, c.n_subjects, argv[i]);
		if (r < 0)
			error(2, -r, "%s", argv[i]);
	}
	c.mutation.bytes = malloc(c.mutation.size_max);
	if (!c.mutation.bytes)
		error(2, errno, "cannot begin");

	run(&c);
	tempdir_remove(c.dir);
	forget(&c);
	share = ipt_reads_ahead() ? DIFFERENT_SHARE_AHEAD : DIFFERENT_SHARE;
	printf("%" PRIu64 " decodings: %" PRIu64 " refused, %" PRIu64 " with gaps, %" PRIu64
	       " instructions; %" PRIu64 " compared, %" PRIu64 " different; %" PRIu64
	       " parts joined; %" PRIu64 " wrong\n",
	       c.tally->n_trials, c.tally->n_refused, c.tally->n_with_gaps, c.tally->n_insns,
	       c.tally->n_compared, c.tally->n_different, c.tally->n_parts, c.tally->n_bad);
	return c.tally->n_bad > 0 || c.tally->n_insns == 0 ||
	       c.tally->n_different > 1 + c.tally->n_compared / share;
}
