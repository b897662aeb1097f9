/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * attack-growing DIRECTORY: map files executable that have 500 MiB, and soon after that 16 TiB.
 * All is zeros, so that they take no room on the disk. It goes on until it is killed. With
 * ATTACK_WAY=honest in the environment they stay as large as they were mapped.
 */

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SMALL ((off_t)500 << 20)
#define HUGE  (((off_t)16 << 40) - 4096)

static void sleep_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 },
			NULL);
}

int main(int argc, char **argv)
{
	const char *way = getenv("ATTACK_WAY");
	const bool grows = !way || strcmp(way, "honest") != 0;
	char path[4096];

	if (argc != 2)
		errx(2, "Usage: attack-growing DIRECTORY");
	for (unsigned i = 0;; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/growing.%u", argv[1], i);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
		if (fd < 0 || pwrite(fd, ELFMAG, SELFMAG, 0) != SELFMAG ||
		    pwrite(fd, &i, sizeof(i), 4096) != sizeof(i) || ftruncate(fd, SMALL) < 0)
			err(1, "%s", path);
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			err(1, "mmap");
		sleep_ms(100);
		/* As large as this file system has them. */
		for (off_t size = HUGE; grows && ftruncate(fd, size) < 0; size /= 2)
			if (size < 2 * SMALL)
				err(1, "%s: it does not grow", path);
		(void)close(fd);
		(void)unlink(path);
		sleep_ms(400);
	}
}
