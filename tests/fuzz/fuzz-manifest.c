/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A foreign manifest and SHA256SUMS: the input up to its first NUL, and what is behind it. Beside
 * them lie a file, a FIFO and a link that leads nowhere, for the sums to name.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/file/manifest.h"
#include "ptd/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int dir_fd, const char *name, const void *bytes, size_t size)
{
	const int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) < 0)
		abort();
}

static char dir[] = "/tmp/fuzz-manifest-XXXXXX";

static void remove_dir(void)
{
	static const char *const names[] = { PTD_SNAPSHOT_MANIFEST, PTD_SNAPSHOT_SUMS,
					     PTD_SNAPSHOT_DATA, "fifo", "link" };
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

static int open_dir(void)
{
	int fd;

	if (!mkdtemp(dir) || atexit(remove_dir) != 0)
		abort();
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || mkfifoat(fd, "fifo", 0600) < 0 || symlinkat("/no/such", fd, "link") < 0)
		abort();
	put(fd, PTD_SNAPSHOT_DATA, "data\n", 5);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	const size_t n = nul ? (size_t)(nul - data) : size;
	static int dir_fd = -1;

	if (dir_fd < 0)
		dir_fd = open_dir();
	put(dir_fd, PTD_SNAPSHOT_MANIFEST, data, n);
	put(dir_fd, PTD_SNAPSHOT_SUMS, nul ? nul + 1 : NULL, nul ? size - n - 1 : 0);

	for (int force = 0; force < 2; force++) {
		struct manifest manifest = { .realtime_offset_ns = 77 };
		char *message = NULL;
		const int r = manifest_read(dir_fd, "DIR", force, NULL, &manifest, &message);

		/* A refusal has a reason, and changes nothing. */
		if (r > 0 || (r < 0) != (message != NULL) ||
		    (r < 0 && manifest.realtime_offset_ns != 77))
			abort();
		if (message && strncmp(message, "DIR: ", 5) != 0)
			abort();
		free(message);
		manifest_deinit(&manifest);
	}
	return 0;
}
