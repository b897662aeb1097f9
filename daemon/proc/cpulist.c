/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/cpulist.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define TEXT_SIZE 16384u

static const char *parse_cpu(const char *p, uint32_t *ret_cpu)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*p))
		return NULL;
	n = strtoul(p, &end, 10);
	if (n >= CPULIST_MAX)
		return NULL;
	*ret_cpu = (uint32_t)n;
	return end;
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
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[TEXT_SIZE];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = 0;
	return cpulist_parse(text, ret_list);
}

uint32_t cpulist_count(const struct cpulist *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ARRAY_LEN(list->bits); i++)
		n += (uint32_t)__builtin_popcountll(list->bits[i]);
	return n;
}
