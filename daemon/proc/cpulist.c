/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/cpulist.h"

#include <errno.h>
#include <fcntl.h>

#include "daemon/proc/sysfile.h"
#include "util/textfile.h"

#define TEXT_SIZE 16384u

static const char *parse_cpu(const char *p, uint32_t *ret_cpu)
{
	p = sysfile_scan(p, 10, ret_cpu);
	return p && *ret_cpu < CPULIST_MAX ? p : NULL;
}

int cpulist_parse(const char *text, struct cpulist *ret_list)
{
	struct cpulist list = {};
	const char *p = text;

	while (*p && *p != '\n') {
		uint32_t first, last;

		p = parse_cpu(p, &first);
		last = first;
		if (p && *p == '-')
			p = parse_cpu(p + 1, &last);
		if (!p || first > last || (*p && *p != '\n' && *p != ','))
			return -EBADMSG;
		for (uint32_t i = first; i <= last; i++)
			list.bits[i / 64] |= UINT64_C(1) << i % 64;
		if (last >= list.end)
			list.end = last + 1;
		if (*p == ',')
			p++;
	}
	*ret_list = list;
	return 0;
}

int cpulist_read(const char *path, struct cpulist *ret_list)
{
	char text[TEXT_SIZE];
	const int r = textfile_read(AT_FDCWD, path, text, sizeof(text));

	return r < 0 ? r : cpulist_parse(text, ret_list);
}

uint32_t cpulist_count(const struct cpulist *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ARRAY_LEN(list->bits); i++)
		n += (uint32_t)__builtin_popcountll(list->bits[i]);
	return n;
}
