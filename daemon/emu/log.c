/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/emu/block.h"

int log_file_new(const char *dir, const char *name, int flag, struct log_file **ret_file)
{
	struct log_file *file = calloc(1, sizeof(*file));
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

struct log_file *log_file_free(struct log_file *file)
{
	if (!file)
		return NULL;
	(void)log_file_flush(file);
	return log_file_forget(file);
}

struct log_file *log_file_forget(struct log_file *file)
{
	if (!file)
		return NULL;
	free(file->path);
	free(file);
	return NULL;
}

static int write_all(int fd, const void *bytes, size_t size)
{
	const uint8_t *pos = bytes;

	while (size > 0) {
		const ssize_t n = write(fd, pos, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			pos += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int log_file_flush(struct log_file *file)
{
	_cleanup_(fd_closep) int fd = -1;
	const size_t size = file->n * sizeof(*file->words);

	if (size == 0)
		return 0;
	file->n = 0;
	fd = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write_all(fd, file->words, size);
}

void log_inherit(struct log_file *file, uint32_t n, uint32_t pid, uint32_t generation)
{
	log_word(file, LOG_INHERITED);
	log_word(file, n);
	log_word(file, pid);
	log_word(file, generation);
}

void log_describe(struct log_file *file, const struct block *block)
{
	log_word(file, block->n);
	log_word(file, 0);
	for (uint32_t i = 0; i < block->n; i++) {
		const uint64_t ip = block->ip + block->offsets[i];

		log_word(file, (uint32_t)ip);
		log_word(file, (uint32_t)(ip >> 32));
	}
}

void log_partial(struct log_file *file, uint32_t id, uint32_t n)
{
	if (!file || n == 0)
		return;
	log_word(file, LOG_PARTIAL);
	log_word(file, id);
	log_word(file, n);
}

void log_unreported(struct log_file *file, uint32_t id)
{
	if (!file)
		return;
	log_word(file, LOG_UNREPORTED);
	log_word(file, id);
}

void log_end(struct log_file *file)
{
	if (!file)
		return;
	log_word(file, LOG_END);
	(void)log_file_flush(file);
}
