/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovnitree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/util/ovni.h"
#include "util/dirs.h"
#include "util/message.h"

/* A search for streams. */
struct search {
	struct ovnitree *tree; /* NULL: the first one is enough */
	size_t n_max;
	size_t n_looks;
	char **reterr_message;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return: whether @name is @prefix and a number of 32 bits. */
static bool parse_name(const char *name, const char *prefix, uint32_t *ret_number)
{
	unsigned long long number;
	char *end;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	number = strtoull(name, &end, 10);
	*ret_number = (uint32_t)number;
	return *name >= '0' && *name <= '9' && *end == '\0' && number <= UINT32_MAX;
}

static bool is_there(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

static void stream_deinit(struct ovnistream *stream)
{
	free(stream->path);
	free(stream->metadata);
	free(stream->loom);
}

/* Add the stream @name in the directory @path, whose metadata is there, too. */
static int add_stream(struct search *s, const char *path, const char *name, const char *metadata,
		      const struct ovnistream *found)
{
	struct ovnistream stream = *found;
	int r = 0;

	if (s->tree->streams.n == s->n_max)
		return message_set(s->reterr_message, -EFBIG, "%s: more than %zu streams", path,
				   s->n_max);
	if (asprintf(&stream.path, "%s/%s", path, name) < 0)
		stream.path = NULL;
	if (asprintf(&stream.metadata, "%s/%s", path, metadata) < 0)
		stream.metadata = NULL;
	if (found->loom)
		stream.loom = strdup(found->loom);
	if (!stream.path || !stream.metadata || (found->loom && !stream.loom))
		r = -ENOMEM;
	if (r == 0)
		r = vec_push(&s->tree->streams, stream);
	if (r < 0)
		stream_deinit(&stream);
	return r;
}

/* --- version 1 -------------------------------------------------------------------------------- */

/* Return: the name of the loom's directory, which is that above @path; the caller frees it. */
static char *loom_of(const char *path)
{
	char *copy = strdup(path), *slash;
	char *loom = NULL;

	slash = copy ? strrchr(copy, '/') : NULL;
	if (slash) {
		*slash = '\0';
		loom = strdup(base_of(copy));
	} else if (copy) {
		loom = strdup("");
	}
	free(copy);
	return loom;
}

/* A thread's file, THREAD or in later releases THREAD.obs, in the directory of a process. */
static int take_thread(struct search *s, const char *path, const char *name,
		       struct ovnistream *process)
{
	char number[64];
	const size_t n = strlen(name), n_end = strlen(".obs");

	if (n >= sizeof(number))
		return 0;
	memcpy(number, name, n + 1);
	if (n > n_end && strcmp(name + n - n_end, ".obs") == 0)
		number[n - n_end] = '\0';
	return parse_name(number, OVNI_THREAD_PREFIX, &process->tid)
		   ? add_stream(s, path, name, OVNI_PROC_METADATA, process)
		   : 0;
}

static int take_process(struct search *s, const char *path, DIR *dir, uint32_t pid)
{
	struct ovnistream process = { .is_old = true, .pid = pid, .loom = loom_of(path) };
	struct dirent *entry;
	int r = process.loom ? 0 : -ENOMEM;

	while (r == 0 && (r = dirs_next(dir, &entry)) > 0)
		r = is_there(dirfd(dir), entry->d_name)
			? take_thread(s, path, entry->d_name, &process)
			: 0;
	free(process.loom);
	return r;
}

/* --- directories ------------------------------------------------------------------------------ */

static int search(struct search *s, const char *path, unsigned int depth);

/* Search the directories in this one. Return: as search(). */
static int search_within(struct search *s, const char *path, DIR *dir, unsigned int depth)
{
	struct dirent *entry;
	int r = 0;

	while (r == 0 && (r = dirs_next(dir, &entry)) > 0) {
		struct stat st;
		char *inner;

		r = 0;
		if (!s->tree && ++s->n_looks > OVNITREE_LOOKS_MAX)
			return 0;
		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (asprintf(&inner, "%s/%s", path, entry->d_name) < 0)
			return -ENOMEM;
		r = search(s, inner, depth + 1);
		free(inner);
	}
	return r;
}

/* Return: 0; 1: the search is over; or negative errno. */
static int search(struct search *s, const char *path, unsigned int depth)
{
	const struct ovnistream newer = {};
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	_cleanup_(dirs_closep) DIR *dir = fd < 0 ? NULL : dirs_list(fd);
	uint32_t pid;

	if (!dir || depth > OVNITREE_DEPTH_MAX)
		return 0;
	if (is_there(fd, OVNI_METADATA) && is_there(fd, OVNI_STREAM))
		return s->tree ? add_stream(s, path, OVNI_STREAM, OVNI_METADATA, &newer) : 1;
	if (is_there(fd, OVNI_PROC_METADATA) && parse_name(base_of(path), OVNI_PROC_PREFIX, &pid))
		return s->tree ? take_process(s, path, dir, pid) : 1;
	return search_within(s, path, dir, depth);
}

/* Return: @path without slashes at its end; the caller frees it. */
static char *plain_path(const char *path)
{
	char *plain = strdup(path);

	for (size_t n = plain ? strlen(plain) : 0; n > 1 && plain[n - 1] == '/'; n--)
		plain[n - 1] = '\0';
	return plain;
}

bool ovnitree_is(const char *path)
{
	_cleanup_(freep) char *plain = plain_path(path);
	struct search s = {};
	struct stat st;

	/* The writer of a FIFO must not see it opened and closed. */
	return plain && stat(plain, &st) == 0 && S_ISDIR(st.st_mode) && search(&s, plain, 0) > 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct ovnistream *)a)->path, ((const struct ovnistream *)b)->path);
}

int ovnitree_find(struct ovnitree *tree, const char *path, size_t n_max, char **reterr_message)
{
	struct search s = { .tree = tree, .n_max = n_max, .reterr_message = reterr_message };
	_cleanup_(freep) char *plain = plain_path(path);
	const int r = plain ? search(&s, plain, 0) : -ENOMEM;

	if (r == 0 && tree->streams.n > 1)
		qsort(tree->streams.items, tree->streams.n, sizeof(*tree->streams.items), by_path);
	return r;
}

void ovnitree_deinit(struct ovnitree *tree)
{
	for (size_t i = 0; i < tree->streams.n; i++)
		stream_deinit(&tree->streams.items[i]);
	vec_deinit(&tree->streams);
}
