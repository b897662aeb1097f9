/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * golden [-p] CASE…: decodes each golden case with every engine, and compares with what the case
 * expects (tests/lib/golden.h). -p prints what was decoded instead, to be compared by eye when a case is
 * written.
 */

#include <ctype.h>
#include <errno.h>
#include <error.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/golden.h"

static const char *const engines[] = { "block", "insn" };

static int unlink_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* White space counts only as being there. */
static bool same_words(const char *a, const char *b)
{
	for (;;) {
		a += strspn(a, " \t\n");
		b += strspn(b, " \t\n");
		while (*a && !isspace((unsigned char)*a) && *a == *b)
			a++, b++;
		if ((*a && !isspace((unsigned char)*a)) || (*b && !isspace((unsigned char)*b)))
			return false;
		if (!*a || !*b)
			return !a[strspn(a, " \t\n")] && !b[strspn(b, " \t\n")];
	}
}

static bool try(const struct golden *golden, const char *path, const char *engine, bool print)
{
	char dir[] = "/tmp/ptd-golden-XXXXXX";
	_cleanup_(freep) char *got = NULL;
	bool same;
	int r;

	if (!mkdtemp(dir))
		error(1, errno, "%s", dir);
	r = golden_decode(golden, dir, engine, &got);
	(void)nftw(dir, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
	same = r == 0 && same_words(got, golden->expect);
	if (r == 0 && print)
		printf("%s, engine %s:\n%s", path, engine, got);
	else if (r == 0 && !same)
		printf("%s, engine %s: expected\n%sbut there was\n%s", path, engine, golden->expect,
		       got);
	return same;
}

int main(int argc, char **argv)
{
	unsigned n_cases = 0, n_failed = 0;
	bool print = false;
	int opt;

	while ((opt = getopt(argc, argv, "p")) != -1) {
		if (opt != 'p')
			return 1;
		print = true;
	}
	for (int i = optind; i < argc; i++) {
		_cleanup_(golden_freep) struct golden *golden = NULL;
		unsigned line;
		const int r = golden_read(argv[i], &golden, &line);

		if (r < 0)
			error_at_line(1, -r, argv[i], line, "makes no sense as a golden case");
		n_cases++;
		for (size_t e = 0; e < ARRAY_LEN(engines); e++)
			n_failed += !try(golden, argv[i], engines[e], print);
	}
	printf("%u golden cases on %zu engines, %u failed\n", n_cases, ARRAY_LEN(engines),
	       n_failed);
	return n_cases == 0 || n_failed > 0;
}
