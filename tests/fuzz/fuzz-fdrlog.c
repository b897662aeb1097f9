/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A foreign flight data recorder file, up to the text "map:", behind which stands the ELF file that
 * names its functions. It is read as an input; its calls must nest.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/loggedcheck.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char log_path[] = "/tmp/fuzz-fdrlog-XXXXXX", map_path[] = "/tmp/fuzz-fdrlog-XXXXXX";

static void remove_files(void)
{
	(void)unlink(log_path);
	(void)unlink(map_path);
}

static void make_file(char *path)
{
	const int fd = mkstemp(path);

	if (fd < 0 || close(fd) < 0)
		abort();
}

static void put(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");

	if (!f || (size > 0 && fwrite(bytes, 1, size, f) != size) || fclose(f) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char behind[] = "map:";
	static bool has_files;
	const uint8_t *map;

	if (!has_files) {
		has_files = true;
		make_file(log_path);
		make_file(map_path);
		if (atexit(remove_files) != 0)
			abort();
	}
	map = memmem(data, size, behind, strlen(behind));
	put(log_path, data, map ? (size_t)(map - data) : size);
	if (map) {
		map += strlen(behind);
		put(map_path, map, (size_t)(data + size - map));
	}
	loggedcheck(log_path, map ? map_path : NULL);
	return 0;
}
