/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * attack-large DIRECTORY: map 100 files executable of 500 MiB each. All but a few bytes of them
 * are holes, so that they take no room on the disk; but whoever copies them has to read them. It
 * stays until it is killed. With ATTACK_IDLE in the environment they are only mapped to be read,
 * which is no record: the same load without requests.
 */

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N    100u
#define SIZE ((off_t)500 << 20)

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 2)
		errx(2, "Usage: attack-large DIRECTORY");
	for (unsigned i = 0; i < N; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/large.%u", argv[1], i);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
		if (fd < 0 || pwrite(fd, ELFMAG, SELFMAG, 0) != SELFMAG ||
		    pwrite(fd, &i, sizeof(i), 4096) != sizeof(i) || ftruncate(fd, SIZE) < 0)
			err(1, "%s", path);
		if (mmap(NULL, 4096, getenv("ATTACK_IDLE") ? PROT_READ : PROT_READ | PROT_EXEC,
			 MAP_PRIVATE, fd, 0) == MAP_FAILED)
			err(1, "mmap");
		(void)close(fd);
	}
	for (;;)
		(void)usleep(1000); /* it runs, so a snapshot is of it */
}
