/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/mapsline.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "util/number.h"

#define NEWLINE "\\012"

/* Take a number in @base off the line, and the character @behind it. */
static bool take_number(char **at, unsigned base, char behind, uint64_t *ret_number)
{
	const char *end = number_take(*at, base, behind, ret_number);

	if (end)
		*at += end - *at;
	return end;
}

static bool take_rights(char **at, struct mapsline *l)
{
	const char *c = *at;

	if (strnlen(c, 5) < 5 || c[4] != ' ')
		return false;
	l->prot = (c[0] == 'r' ? PROT_READ : 0) | (c[1] == 'w' ? PROT_WRITE : 0) |
		  (c[2] == 'x' ? PROT_EXEC : 0);
	l->flags = c[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	*at += 5;
	return true;
}

int mapsline_parse(char *line, struct mapsline *ret_line)
{
	struct mapsline l = {};
	uint64_t maj, min;
	char *at = line;

	if (!take_number(&at, 16, '-', &l.start) || !take_number(&at, 16, ' ', &l.end) ||
	    !take_rights(&at, &l) || !take_number(&at, 16, ' ', &l.offset) ||
	    !take_number(&at, 16, ':', &maj) || !take_number(&at, 16, ' ', &min) ||
	    l.end <= l.start || maj > UINT32_MAX || min > UINT32_MAX)
		return -EBADMSG;
	/* If the mapping has no name, the kernel ends the line after the inode, with or without a
	 * blank. */
	if (!take_number(&at, 10, ' ', &l.ino) && !take_number(&at, 10, '\0', &l.ino))
		return -EBADMSG;
	l.name = at[-1] == '\0' ? at - 1 : at + strspn(at, " ");
	l.maj = (uint32_t)maj;
	l.min = (uint32_t)min;
	*ret_line = l;
	return 0;
}

void mapsline_unescape(char *name)
{
	char *to = name;

	for (const char *from = name; *from; from++)
		if (strncmp(from, NEWLINE, strlen(NEWLINE)) == 0) {
			*to++ = '\n';
			from += strlen(NEWLINE) - 1;
		} else {
			*to++ = *from;
		}
	*to = '\0';
}
