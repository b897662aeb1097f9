/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/texttable.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"

#define TEXT_MAX (UINT64_C(1) << 28)

bool texttable_number(const char *text, int base, uint64_t *ret_number)
{
	char *end;

	if (!(*text >= '0' && *text <= '9') && !(*text >= 'a' && *text <= 'f'))
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, base);
	return errno == 0 && *end == '\0';
}

static size_t count_columns(const char *heading)
{
	size_t n = 1;

	for (; *heading; heading++)
		n += *heading == '\t';
	return n;
}

static int read_lines(char *text, const char *heading, texttable_row_fn take, void *userdata,
		      size_t *ret_line)
{
	const size_t n = count_columns(heading);
	char *line;

	assert(n <= TEXTTABLE_COLUMNS_MAX);
	*ret_line = 1;
	line = strsep(&text, "\n");
	if (!text || strcmp(line, heading) != 0)
		return -EBADMSG;
	while (text && *text) {
		char *columns[TEXTTABLE_COLUMNS_MAX];
		int r;

		(*ret_line)++;
		line = strsep(&text, "\n");
		/* What is behind the last newline was cut off. */
		if (!text)
			return -EBADMSG;
		for (size_t i = 0; i < n; i++)
			columns[i] = strsep(&line, "\t");
		r = columns[n - 1] && !line ? take(userdata, columns) : -EBADMSG;
		if (r < 0)
			return r;
	}
	return 0;
}

int texttable_read(const char *path, const char *heading, texttable_row_fn take, void *userdata,
		   char **ret_text, size_t *ret_line)
{
	size_t size;
	int r;

	*ret_line = 0;
	r = container_read_all(path, TEXT_MAX, ret_text, &size);
	if (r == 0 && strlen(*ret_text) != size)
		r = -EBADMSG;
	return r < 0 ? r : read_lines(*ret_text, heading, take, userdata, ret_line);
}
