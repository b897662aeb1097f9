/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"
#include "decoder/drmemtrace/tracedir.h"

#define TEXT_MAX (UINT64_C(1) << 28)

void names_deinit(struct names *names)
{
	free(names->path);
	names->path = NULL;
	map_deinit(&names->numbers);
}

/* Return: 1 if the line is right; 0; or -ENOMEM. */
static int read_name(struct names *names, const char *line, char separator)
{
	uint64_t number;
	char *end;
	int r;

	if (line[0] < '0' || line[0] > '9')
		return 0;
	errno = 0;
	number = strtoull(line, &end, 10);
	if (errno || *end != separator || map_get(&names->numbers, number))
		return 0;
	r = map_put(&names->numbers, number, 0);
	return r < 0 ? r : 1;
}

int names_read(struct names *names, const char *dir, const char *file_name, char separator,
	       void (*fault)(void *userdata, const char *path, size_t line), void *userdata,
	       char **reterr_path)
{
	_cleanup_(freep) char *text = NULL;
	char *at, *line;
	size_t size;
	int r;

	r = tracedir_find(dir, file_name, &names->path);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = container_read_all(names->path, TEXT_MAX, &text, &size);
	if (r < 0) {
		*reterr_path = names->path ? strdup(names->path) : NULL;
		return r;
	}
	at = text;
	for (size_t n = 1; at && *at; n++) {
		line = strsep(&at, "\n");
		r = read_name(names, line, separator);
		if (r < 0)
			return r;
		if (r == 0 && (n > 1 || (line[0] >= '0' && line[0] <= '9')))
			fault(userdata, names->path, n);
	}
	return 0;
}
