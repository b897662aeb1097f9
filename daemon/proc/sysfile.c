/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/sysfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/textfile.h"

int sysfile_text(int dir_fd, const char *name, char ret_text[SYSFILE_TEXT_SIZE])
{
	int n = textfile_read(dir_fd, name, ret_text, SYSFILE_TEXT_SIZE);

	if (n < 0)
		return n;
	while (n > 0 && isspace((unsigned char)ret_text[n - 1]))
		n--;
	ret_text[n] = 0;
	return 0;
}

const char *sysfile_scan(const char *text, int base, uint32_t *ret_number)
{
	unsigned long n;
	char *end;

	if (!isxdigit((unsigned char)text[0]))
		return NULL;
	errno = 0;
	n = strtoul(text, &end, base);
	if (errno || end == text || n > UINT32_MAX)
		return NULL;
	*ret_number = (uint32_t)n;
	return end;
}

int sysfile_number(int dir_fd, const char *name, int base, uint32_t *ret_number)
{
	char text[SYSFILE_TEXT_SIZE];
	const char *end;
	uint32_t n;
	int r;

	r = sysfile_text(dir_fd, name, text);
	if (r < 0)
		return r;
	end = sysfile_scan(text, base, &n);
	if (!end || *end)
		return -EBADMSG;
	*ret_number = n;
	return 0;
}

/* "config:14-17" or "config:0". */
static int parse_format(const char *text, uint64_t *ret_mask)
{
	static const char prefix[] = "config:";
	uint32_t first, last;
	const char *p;

	if (strncmp(text, prefix, sizeof(prefix) - 1) != 0)
		return -EBADMSG;
	p = sysfile_scan(text + sizeof(prefix) - 1, 10, &first);
	last = first;
	if (p && *p == '-')
		p = sysfile_scan(p + 1, 10, &last);
	if (!p || *p || first > last || last > 63)
		return -EBADMSG;
	*ret_mask = (UINT64_MAX >> (63 - (last - first))) << first;
	return 0;
}

int sysfile_mask(int dir_fd, const char *name, uint64_t *ret_mask)
{
	char text[SYSFILE_TEXT_SIZE];
	int r;

	r = sysfile_text(dir_fd, name, text);
	return r < 0 ? r : parse_format(text, ret_mask);
}
