/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/truthlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/plugin/block.h"
#include "util/fullwrite.h"

int truthlog_new(const char *dir, const char *name, int flag, struct truthlog **ret_file)
{
	struct truthlog *file = calloc(1, sizeof(*file));
	int fd = -1;

	if (!file)
		return -ENOMEM;
	if (asprintf(&file->path, "%s/%s", dir, name) < 0) {
		free(file);
		return -ENOMEM;
	}
	fd = open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC | flag, 0666);
	if (fd < 0) {
		const int r = -errno;

		free(file->path);
		free(file);
		return r;
	}
	(void)close(fd);
	*ret_file = file;
	return 0;
}

struct truthlog *truthlog_free(struct truthlog *file)
{
	if (!file)
		return NULL;
	(void)truthlog_flush(file);
	return truthlog_forget(file);
}

struct truthlog *truthlog_forget(struct truthlog *file)
{
	if (!file)
		return NULL;
	free(file->path);
	free(file);
	return NULL;
}

int truthlog_flush(struct truthlog *file)
{
	_cleanup_(fd_closep) int fd = -1;
	const size_t size = file->n * sizeof(*file->words);

	if (size == 0)
		return 0;
	file->n = 0;
	fd = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fullwrite(fd, file->words, size);
}

void truthlog_inherit(struct truthlog *file, uint32_t n, uint32_t pid, uint32_t generation)
{
	truthlog_word(file, TRUTHLOG_INHERITED);
	truthlog_word(file, n);
	truthlog_word(file, pid);
	truthlog_word(file, generation);
}

void truthlog_describe(struct truthlog *file, const struct block *block)
{
	truthlog_word(file, block->n);
	truthlog_word(file, 0);
	for (uint32_t i = 0; i < block->n; i++) {
		const uint64_t ip = block->ip + block->offsets[i];

		truthlog_word(file, (uint32_t)ip);
		truthlog_word(file, (uint32_t)(ip >> 32));
	}
}

void truthlog_partial(struct truthlog *file, uint32_t id, uint32_t n)
{
	if (!file || n == 0)
		return;
	truthlog_word(file, TRUTHLOG_PARTIAL);
	truthlog_word(file, id);
	truthlog_word(file, n);
}

void truthlog_unreported(struct truthlog *file, uint32_t id)
{
	if (!file)
		return;
	truthlog_word(file, TRUTHLOG_UNREPORTED);
	truthlog_word(file, id);
}

void truthlog_end(struct truthlog *file)
{
	if (!file)
		return;
	truthlog_word(file, TRUTHLOG_END);
	(void)truthlog_flush(file);
}
