/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/timespan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	double ns;
} units[] = {
	{ "us", 1e3 },   { "ms", 1e6 },   { "s", 1e9 },         { "", 1e9 },
	{ "min", 60e9 }, { "h", 3600e9 }, { "d", 24 * 3600e9 }, { "w", 7 * 24 * 3600e9 },
};

int timespan_parse(const char *text, uint64_t *ret_ns)
{
	char *end;
	double n;

	/* strtod() would take "inf", "0x10", and a sign. */
	if (strspn(text, "0123456789.") == 0)
		return -EINVAL;
	errno = 0;
	n = strtod(text, &end);
	if (errno || end != text + strspn(text, "0123456789."))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (n * units[i].ns >= (double)TIMESPAN_MAX_NS)
			return -EINVAL;
		*ret_ns = (uint64_t)(n * units[i].ns);
		return 0;
	}
	return -EINVAL;
}
