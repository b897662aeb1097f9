/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/budget.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "util/dirs.h"

/* How far a file system may compress a file. A file that is larger has holes. */
#define COMPRESSION_MAX 16u

/* The bytes of a file have addresses of their own, engine insn reserves as many for its copy of the
 * PT, and what is made of code takes a multiple of it. */
#define N_MAPPINGS 6u

static uint64_t add_sizes(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static uint64_t size_of_file(const struct stat *st)
{
	const uint64_t size = (uint64_t)st->st_size;
	const uint64_t on_disk = ((uint64_t)st->st_blocks + 8) * 512 * COMPRESSION_MAX;

	return size < on_disk ? size : on_disk;
}

static uint64_t size_of_tree(int fd, int depth)
{
	_cleanup_(dirs_closep) DIR *dir = depth > DIRS_DEPTH_MAX ? NULL : dirs_list(fd);
	struct dirent *entry;
	uint64_t size = 0;

	while (dir && dirs_next(dir, &entry) > 0) {
		_cleanup_(fd_closep) int child = -1;
		struct stat st;

		if (fstatat(fd, entry->d_name, &st, 0) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			size = add_sizes(size, size_of_file(&st));
		if (!S_ISDIR(st.st_mode))
			continue;
		child = dirs_open(fd, entry->d_name);
		if (child >= 0)
			size = add_sizes(size, size_of_tree(child, depth + 1));
	}
	return size;
}

uint64_t budget_size_of(const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return size_of_file(&st);
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? 0 : size_of_tree(fd, 0);
}

uint64_t budget_for(uint64_t inputs, uint64_t spills, size_t n_threads)
{
	uint64_t size = add_sizes(BUDGET_BASE, spills);

	for (size_t i = 1; i < n_threads; i++)
		size = add_sizes(size, BUDGET_THREAD);

	for (unsigned i = 0; i < N_MAPPINGS; i++)
		size = add_sizes(size, inputs);
	return size;
}
