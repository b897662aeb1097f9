/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "util/mapsline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = strndup((const char *)data, size);
	const char *end = line + strlen(line);
	struct mapsline l;

	if (mapsline_parse(line, &l) == 0) {
		assert(l.start < l.end && l.name >= line && l.name <= end);
		mapsline_unescape(l.name);
		assert(strlen(l.name) <= (size_t)(end - l.name));
	}
	free(line);
	return 0;
}
