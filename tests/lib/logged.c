/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/logged.h"

#include <errno.h>
#include <error.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *real;
static char *text;
static size_t size;

void logged_begin(void)
{
	FILE *f;

	free(text);
	text = NULL;
	f = open_memstream(&text, &size);
	if (!f)
		error(1, errno, "there is no memory for what is logged");
	real = stderr;
	stderr = f;
}

const char *logged_end(void)
{
	(void)fclose(stderr);
	stderr = real;
	return text;
}
