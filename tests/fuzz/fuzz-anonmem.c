/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A foreign file of memory: its pieces lie in it, are apart, and are found with their bytes. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/jit/anonmem.h"
#include "ptd/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

static void check_piece(const struct anonmem *memory, size_t i, const uint8_t *data, size_t size)
{
	const struct anonmem_piece *p = &memory->pieces.items[i];
	const uint64_t n = p->last - p->start + 1;
	const uint8_t *bytes;

	check(p->start <= p->last && p->offset <= size && n <= size - p->offset);
	check(i == 0 || p[-1].pid < p->pid || (p[-1].pid == p->pid && p[-1].last < p->start));
	check(anonmem_find(memory, p->pid, p->start) == p);
	check(anonmem_find(memory, p->pid, p->last) == p);
	bytes = object_bytes(p->object, p->offset, n);
	check(bytes && memcmp(bytes, data + p->offset, n) == 0);
	check(object_address(p->object, p->offset + (n - 1)) == p->last);
}

static void check_memory(const char *dir, const uint8_t *data, size_t size)
{
	struct perfmaps perfmaps;
	struct memfiles files;
	struct anonmem memory;
	struct objects *objects;

	check(objects_new(dir, &objects) == 0);
	perfmaps_init(&perfmaps, dir);
	check(memfiles_init(&files, objects) == 0);
	check(anonmem_init(&memory, &files, &perfmaps) == 0);
	for (size_t i = 0; i < memory.pieces.n && i < 1000; i++)
		check_piece(&memory, i, data, size);
	anonmem_deinit(&memory);
	memfiles_deinit(&files);
	perfmaps_deinit(&perfmaps);
	objects_free(objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/fuzz-anonmem-XXXXXX", folder[64], path[64];
	int fd;

	check(mkdtemp(dir) != NULL);
	(void)snprintf(folder, sizeof(folder), "%s/" PTD_SNAPSHOT_MEM, dir);
	(void)snprintf(path, sizeof(path), "%s/" PTD_SNAPSHOT_MEM_PAGES, dir);
	check(mkdir(folder, 0700) == 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
	check_memory(dir, data, size);
	check(unlink(path) == 0 && rmdir(folder) == 0 && rmdir(dir) == 0);
	return 0;
}
