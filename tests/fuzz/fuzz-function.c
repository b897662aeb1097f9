/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions of a foreign ELF file: whatever its headers say, each that is found lies in the file,
 * and none is found twice.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/function.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "main", "f", "" };
	_cleanup_(fd_closep) int fd = memfd_create("elf", MFD_CLOEXEC);
	struct function found[8];
	int n;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	n = function_find(fd, names, ARRAY_LEN(names), found, ARRAY_LEN(found));
	if (n > (int)ARRAY_LEN(found))
		abort();
	for (int i = 0; i < n; i++) {
		if (found[i].name >= ARRAY_LEN(names))
			abort();
		for (int k = 0; k < i; k++)
			if (found[k].name == found[i].name && found[k].offset == found[i].offset)
				abort();
	}
	return 0;
}
