/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "prove/agree.h"

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prove/subject.h"

#define KERNEL (UINT64_C(1) << 63)

struct list {
	uint64_t *ips;
	size_t n, n_max;
};

static bool read_one(FILE *f, uint64_t *ret_ip)
{
	return f == stdin ? scanf("%" SCNx64, ret_ip) == 1
			  : fread(ret_ip, sizeof(*ret_ip), 1, f) == 1;
}

/* Read from the first begin to the first end, without what the kernel ran. */
static struct list read_list(const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	bool counts = false;
	struct list l = {};
	uint64_t ip;

	if (!f)
		err(2, "%s", path);
	while (read_one(f, &ip) && (l.n == 0 || counts)) {
		counts = counts || ip == (uint64_t)subject_begin;
		if (!counts || ip >= KERNEL)
			continue;
		if (l.n == l.n_max) {
			l.n_max = l.n_max ? 2 * l.n_max : 4096;
			l.ips = realloc(l.ips, l.n_max * sizeof(ip));
			if (!l.ips)
				err(2, "%s", path);
		}
		l.ips[l.n++] = ip;
		counts = ip != (uint64_t)subject_end;
	}
	if (ferror(f))
		err(2, "%s", path);
	if (f != stdin)
		(void)fclose(f);
	return l;
}

int agree(const char *truth, const char *decoded)
{
	const struct list a = read_list(truth), b = read_list(decoded);
	size_t n = 0;
	int r = 1;

	while (n < a.n && n < b.n && a.ips[n] == b.ips[n])
		n++;
	if (a.n == 0)
		printf("nothing was stepped\n");
	else if (n == a.n && n == b.n)
		r = printf("%zu equal\n", n) < 0;
	else if (n == b.n)
		printf("%zu of %zu equal, and no more\n", n, a.n);
	else if (n == a.n)
		printf("%zu equal, and then more\n", n);
	else
		printf("%zu of %zu equal, then %#" PRIx64 " ran and %#" PRIx64 " is decoded\n", n,
		       a.n, a.ips[n], b.ips[n]);
	free(a.ips);
	free(b.ips);
	return r;
}
