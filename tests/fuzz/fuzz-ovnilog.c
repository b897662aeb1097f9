/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A foreign stream of ovni, up to the text "meta:", behind which stands its metadata. It is read as
 * an input, as a stream of version 1 and of version 3; its calls must nest.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/lib/statedcheck.h"
#include "tests/lib/tempdir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[][2] = { { "proc.9/thread.7", "proc.9/metadata.json" },
						{ "stream.obs", "stream.json" } };
	static const char divider[] = "meta:";
	const uint8_t *found = memmem(data, size, divider, strlen(divider));
	const size_t n = found ? (size_t)(found - data) : size;
	const uint8_t *meta = found ? found + strlen(divider) : data;
	char dir[TEMPDIR_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		tempdir_make("fuzz-ovni", dir);
		tempdir_put(dir, names[i][0], data, n);
		tempdir_put(dir, names[i][1], meta, found ? (size_t)(data + size - meta) : 0);
		statedcheck(dir, NULL);
		tempdir_remove(dir);
	}
	return 0;
}
