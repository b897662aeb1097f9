/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/prove/agree.h"

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl/prove/subject.h"
#include "util/vec.h"

#define KERNEL (UINT64_C(1) << 63)

struct list {
	VEC(uint64_t) ips;
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
	while (read_one(f, &ip) && (l.ips.n == 0 || counts)) {
		counts = counts || ip == (uint64_t)subject_begin;
		if (!counts || ip >= KERNEL)
			continue;
		if (vec_push(&l.ips, ip) < 0)
			errx(2, "%s: no memory", path);
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
	struct list a = read_list(truth), b = read_list(decoded);
	size_t n = 0;
	int r = 1;

	while (n < a.ips.n && n < b.ips.n && a.ips.items[n] == b.ips.items[n])
		n++;
	if (a.ips.n == 0)
		printf("nothing was stepped\n");
	else if (n == a.ips.n && n == b.ips.n)
		r = printf("%zu equal\n", n) < 0;
	else if (n == b.ips.n)
		printf("%zu of %zu equal, and no more\n", n, a.ips.n);
	else if (n == a.ips.n)
		printf("%zu equal, and then more\n", n);
	else
		printf("%zu of %zu equal, then %#" PRIx64 " ran and %#" PRIx64 " is decoded\n", n,
		       a.ips.n, a.ips.items[n], b.ips.items[n]);
	vec_deinit(&a.ips);
	vec_deinit(&b.ips);
	return r;
}
