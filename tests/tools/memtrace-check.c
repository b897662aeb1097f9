/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * memtrace-check: is this directory a drmemtrace trace that obeys every rule?
 * (tests/judge/memtrace.h says which kind of trace, and which rules.) Breaches are printed one a
 * line, and behind them how much was checked; with --addresses, on stderr.
 *
 * Exit status: 0 if there is none, 1 if there is one, 2 if the trace could not be read.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "tests/judge/memtrace.h"

static int usage(void)
{
	fprintf(stderr,
		"usage: memtrace-check [--list | --addresses PID.TID] DIR\n"
		"  --list               print what each file holds: ids, instructions, markers\n"
		"  --addresses PID.TID  write the pcs of the thread's instructions to stdout, in "
		"their\n"
		"                       order, each as a u64, little endian\n");
	return 2;
}

static void print_sum(const struct memtrace *trace, const char *dir)
{
	uint64_t n_insns = 0;

	for (size_t i = 0; i < trace->files.n; i++)
		n_insns += trace->files.items[i].n_insns;
	fprintf(trace->faults, "%s: %zu file%s, %" PRIu64 " instructions, %" PRIu64 " fault%s\n",
		dir, trace->files.n, plural(trace->files.n), n_insns, trace->n_faults,
		plural(trace->n_faults));
}

static void list(const struct memtrace *trace)
{
	for (size_t i = 0; i < trace->files.n; i++) {
		const struct memtrace_file *file = &trace->files.items[i];

		printf("%s pid %" PRIu64 " tid %" PRIu64 " instructions %" PRIu64
		       " windows %" PRIu64 " markers",
		       file->path, file->pid, file->tid, file->n_insns, file->n_windows);
		for (size_t kind = 0; kind < MEMTRACE_N_MARKERS; kind++) {
			if (file->n_markers[kind])
				printf(" %zu:%" PRIu64, kind, file->n_markers[kind]);
		}
		putchar('\n');
	}
}

static int run(struct memtrace *trace, const char *dir, const char *thread)
{
	_cleanup_(freep) char *path = NULL;
	uint64_t pid, tid;
	int n_parsed = 0;
	int r;

	if (thread && (sscanf(thread, "%" SCNu64 ".%" SCNu64 "%n", &pid, &tid, &n_parsed) != 2 ||
		       thread[n_parsed] != '\0')) {
		log_error("%s: not PID.TID", thread);
		return -EINVAL;
	}
	r = memtrace_find(trace, dir, &path);
	if (r == 0 && thread)
		r = memtrace_select(trace, pid, tid, &path);
	if (r == -ENOENT && thread && !path)
		log_error("%s: no file of thread %s", dir, thread);
	else if (r == 0)
		r = memtrace_check(trace, &path);
	if (r < 0 && path)
		(void)log_error_errno(r, "%s: %m", path);
	return r;
}

int main(int argc, char **argv)
{
	struct memtrace trace = { .faults = stdout };
	const char *thread = NULL;
	bool is_list = false;
	int r;

	if (argc == 3 && strcmp(argv[1], "--list") == 0) {
		is_list = true;
	} else if (argc == 4 && strcmp(argv[1], "--addresses") == 0) {
		thread = argv[2];
		trace.addresses = stdout;
		trace.faults = stderr;
	} else if (argc != 2 || argv[1][0] == '-') {
		return usage();
	}

	r = run(&trace, argv[argc - 1], thread);
	if (r == 0 && is_list)
		list(&trace);
	else if (r == 0)
		print_sum(&trace, argv[argc - 1]);
	if (r == 0 && fflush(stdout) != 0)
		r = log_error_errno(-errno, "stdout: %m");
	memtrace_deinit(&trace);
	return r < 0 ? 2 : trace.n_faults ? 1 : 0;
}
