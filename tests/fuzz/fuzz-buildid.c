/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The build-id of a foreign ELF file: whatever its headers say, reading it takes no memory to speak
 * of.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/buildid.h"

#define GROWTH_MAX_KIB (8L << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long peak_kib(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		abort();
	return usage.ru_maxrss;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(fd_closep) int fd = memfd_create("elf", MFD_CLOEXEC);
	struct buildid read;
	long before, grown;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	before = peak_kib();
	if (buildid_read(fd, &read) < 0)
		abort();
	grown = peak_kib() - before;
	if (grown > GROWTH_MAX_KIB) {
		(void)fprintf(stderr, "%zu bytes took %ld KiB of memory\n", size, grown);
		abort();
	}
	if (read.size > BUILDID_MAX)
		abort();
	return 0;
}
