/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/tracecheck.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "decoder/check/memtrace.h"

static void print_sum(const struct memtrace *trace, const char *dir)
{
	uint64_t n_insns = 0;

	for (size_t i = 0; i < trace->files.n; i++)
		n_insns += trace->files.items[i].n_insns;
	printf("%s: %zu file%s, %" PRIu64 " instructions, %" PRIu64 " fault%s\n", dir,
	       trace->files.n, plural(trace->files.n), n_insns, trace->n_faults,
	       plural(trace->n_faults));
}

int tracecheck_run(const char *dir)
{
	struct memtrace trace = { .faults = stdout };
	_cleanup_(freep) char *path = NULL;
	int r;

	r = memtrace_find(&trace, dir, &path);
	if (r == 0)
		r = memtrace_check(&trace, &path);
	if (r < 0)
		(void)log_error_errno(r, "%s: %m", path ?: dir);
	else
		print_sum(&trace, dir);
	if (r == 0 && fflush(stdout) != 0)
		r = log_error_errno(-errno, "standard output: cannot write: %m");
	if (r == 0 && trace.n_faults > 0)
		r = 1;
	memtrace_deinit(&trace);
	return r;
}
