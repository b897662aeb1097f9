/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/objectsmap.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/number.h"

void objectsmap_put(FILE *f, const char *id, const char *path)
{
	fprintf(f, "%s\t", id);
	for (const char *c = path; *c; c++)
		if (*c == '\n' || *c == '\\')
			fprintf(f, "\\%03o", (unsigned int)*c);
		else
			fputc(*c, f);
	fputc('\n', f);
}

/* Three octal digits of a byte that is not 0. Return: whether there are. */
static bool read_octal(const char *digits, char *ret_byte)
{
	unsigned int byte = 0;

	for (size_t i = 0; i < 3; i++) {
		if (digits[i] < '0' || digits[i] > '7')
			return false;
		byte = byte << 3 | (unsigned int)(digits[i] - '0');
	}
	if (byte == 0 || byte > 0xff)
		return false;
	*ret_byte = (char)byte;
	return true;
}

int objectsmap_split(char *line, const char **ret_id, const char **ret_path)
{
	char *const tab = strchr(line, '\t');
	char *to;

	if (!tab || tab == line || !tab[1])
		return -EBADMSG;
	*tab = '\0';
	to = tab + 1;
	for (const char *from = tab + 1; *from; to++)
		if (*from == '\\' && read_octal(from + 1, to))
			from += 4;
		else
			*to = *from++;
	*to = '\0';
	*ret_id = line;
	*ret_path = tab + 1;
	return 0;
}

int objectsmap_take_inode(const char **id, struct objectsmap_inode *ret_inode)
{
	uint64_t maj = 0, min = 0, ino = 0;
	const char *at = *id;

	if (*at == '@') {
		at = number_take(at + 1, 10, ':', &maj);
		at = at ? number_take(at, 10, ':', &min) : NULL;
		at = at ? number_take(at, 10, ' ', &ino) : NULL;
		if (!at || maj > UINT32_MAX || min > UINT32_MAX || ino == 0)
			return -EBADMSG;
	}
	*id = at;
	*ret_inode = (struct objectsmap_inode){ (uint32_t)maj, (uint32_t)min, ino };
	return 0;
}

bool objectsmap_is_missing(const char *id, char ret_hash[static SHA256_HEX_SIZE])
{
	const char *hash = id + strlen("- " OBJECTSMAP_HASH);

	ret_hash[0] = '\0';
	if (strncmp(id, "- " OBJECTSMAP_HASH, strlen("- " OBJECTSMAP_HASH)) == 0 &&
	    strspn(hash, "0123456789abcdef") == SHA256_HEX_SIZE - 1 &&
	    (hash[SHA256_HEX_SIZE - 1] == '\0' || hash[SHA256_HEX_SIZE - 1] == ' '))
		(void)snprintf(ret_hash, SHA256_HEX_SIZE, "%s", hash);
	return strcmp(id, "-") == 0 || strncmp(id, "- ", 2) == 0;
}
