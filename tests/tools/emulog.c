/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Shows and compares the ground truth of a recording by the software PT source.
 *
 *	emulog DIR			its threads and how many instructions each retired
 *	emulog DIR PID.TID		the instructions' addresses, u64 little endian, to stdout
 *	emulog --compare DIR PID.TID	compare them with such a stream from stdin
 *
 * The comparison allows a stream to lack what the log marks as unreported (int3, int n), nothing
 * else. Exit status: 0 equal, 1 different, 2 the log cannot be read.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/emulog.h"

#define CONTEXT 8

static int fail(int r, const char *dir, const char *name)
{
	fprintf(stderr, "emulog: %s/%s: %s\n", dir, name, strerror(-r));
	return 2;
}

static int count(const char *dir, const char *name, uint64_t *ret_n)
{
	struct emulog_insn insn;
	struct emulog log;
	uint64_t n = 0;
	int r;

	r = emulog_init(&log, dir, name);
	if (r < 0)
		return r;
	while ((r = emulog_next(&log, &insn)) == 0)
		n++;
	emulog_deinit(&log);
	*ret_n = n;
	return r < 0 ? r : 0;
}

static int list(const char *dir)
{
	struct emulog_names names;
	uint64_t n;
	int r;

	r = emulog_list(dir, &names);
	if (r < 0)
		return fail(r, dir, "");
	for (size_t i = 0; r == 0 && i < names.list.n; i++) {
		r = count(dir, names.list.items[i], &n);
		if (r < 0)
			r = fail(r, dir, names.list.items[i]);
		else
			printf("%s %" PRIu64 "\n", names.list.items[i], n);
	}
	emulog_names_deinit(&names);
	return r;
}

static int dump(const char *dir, const char *name)
{
	struct emulog_insn insn;
	struct emulog log;
	int r;

	r = emulog_init(&log, dir, name);
	if (r < 0)
		return fail(r, dir, name);
	while ((r = emulog_next(&log, &insn)) == 0)
		(void)fwrite(&insn.ip, sizeof(insn.ip), 1, stdout);
	emulog_deinit(&log);
	if (r < 0)
		return fail(r, dir, name);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 2;
}

/* The last instructions that were equal, to show before a difference. */
struct context {
	uint64_t ip[CONTEXT];
	uint64_t n;
};

static void show_difference(const struct context *context, const uint64_t *decoded,
			    const uint64_t *logged)
{
	const uint64_t first = context->n > CONTEXT ? context->n - CONTEXT : 0;

	printf("different at instruction %" PRIu64 "\n", context->n);
	for (uint64_t i = first; i < context->n; i++)
		printf("  both     %#" PRIx64 "\n", context->ip[i % CONTEXT]);
	if (decoded)
		printf("  decoded  %#" PRIx64 "\n", *decoded);
	else
		printf("  decoded  nothing more\n");
	if (logged)
		printf("  logged   %#" PRIx64 "\n", *logged);
	else
		printf("  logged   nothing more\n");
	for (int i = 0; decoded && i < CONTEXT; i++) {
		uint64_t ip;

		if (fread(&ip, sizeof(ip), 1, stdin) == 1)
			printf("  decoded then %#" PRIx64 "\n", ip);
	}
}

static int compare_open(struct emulog *log, struct context *context, uint64_t *ret_n_allowed)
{
	uint64_t decoded = 0, n_allowed = 0;
	struct emulog_insn insn;
	bool have = false, end = false;
	int r;

	for (;;) {
		if (!have && !end)
			end = fread(&decoded, sizeof(decoded), 1, stdin) != 1;
		have = !end;
		r = emulog_next(log, &insn);
		if (r < 0)
			return r;
		if (r == EMULOG_END)
			break;
		if (insn.unreported && (!have || decoded != insn.ip)) {
			n_allowed++;
			continue;
		}
		if (!have || decoded != insn.ip) {
			show_difference(context, have ? &decoded : NULL, &insn.ip);
			return 1;
		}
		context->ip[context->n++ % CONTEXT] = decoded;
		have = false;
	}
	if (have) {
		show_difference(context, &decoded, NULL);
		return 1;
	}
	*ret_n_allowed = n_allowed;
	return 0;
}

static int compare(const char *dir, const char *name)
{
	struct context context = {};
	struct emulog log;
	uint64_t n_allowed;
	int r;

	r = emulog_init(&log, dir, name);
	if (r < 0)
		return fail(r, dir, name);
	r = compare_open(&log, &context, &n_allowed);
	emulog_deinit(&log);
	if (r < 0)
		return fail(r, dir, name);
	if (r == 0)
		printf("equal: %" PRIu64 " instructions, and %" PRIu64 " that are not reported\n",
		       context.n, n_allowed);
	return r;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--compare") == 0)
		return compare(argv[2], argv[3]);
	if (argc == 3 && argv[1][0] != '-')
		return dump(argv[1], argv[2]);
	if (argc == 2 && argv[1][0] != '-')
		return list(argv[1]);
	fprintf(stderr, "usage: emulog [--compare] DIR [PID.TID]\n");
	return 2;
}
