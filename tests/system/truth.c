/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/system/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int truth_init(struct truth *truth, const char *dir)
{
	*truth = (struct truth){ .blocks = { .mode = 64 } };
	(void)pthread_mutex_init(&truth->lock, NULL);
	if (!dir)
		return 0;
	truth->dir = strdup(dir);
	if (!truth->dir)
		return -ENOMEM;
	return truthlog_new(dir, "0.0.blocks", O_TRUNC, &truth->dictionary);
}

void truth_end(struct truth *truth)
{
	(void)pthread_mutex_lock(&truth->lock);
	for (size_t i = 0; i < truth->logs.n; i++)
		truthlog_end(truth->logs.items[i]);
	if (truth->dictionary)
		(void)truthlog_flush(truth->dictionary);
	(void)pthread_mutex_unlock(&truth->lock);
}

int truth_block(struct truth *truth, uint64_t ip, const struct block_insn *insns, size_t n,
		struct block **ret_block)
{
	int r;

	(void)pthread_mutex_lock(&truth->lock);
	r = blocks_get(&truth->blocks, ip, insns, n, ret_block);
	if (r == BLOCKS_NEW && truth->dictionary)
		truthlog_describe(truth->dictionary, *ret_block);
	(void)pthread_mutex_unlock(&truth->lock);
	return r;
}

/* Make the directory of log @number, with a dictionary that inherits the shared one. */
static int make_dir(const char *dir, const char *number)
{
	_cleanup_(freep) char *name = NULL;

	if (asprintf(&name, "%s/%s/0.0.blocks", dir, number) < 0)
		return -ENOMEM;
	*strrchr(name, '/') = '\0';
	if (mkdir(name, 0777) < 0)
		return errno == EEXIST ? 0 : -errno;
	name[strlen(name)] = '/';
	return symlink("../0.0.blocks", name) < 0 ? -errno : 0;
}

static int inherit_dictionary(const char *dir, const char *number, uint32_t pid)
{
	struct truthlog *file;
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), "%s/%" PRIu32 ".0.blocks", number, pid);
	r = truthlog_new(dir, name, O_TRUNC, &file);
	if (r < 0)
		return r;
	truthlog_inherit(file, UINT32_MAX, 0, 0);
	file = truthlog_free(file);
	return 0;
}

static struct truthlog *new_log(struct truth *truth, uint32_t number, uint32_t pid, uint32_t tid)
{
	struct truthlog *file;
	char text[16], name[64];

	(void)snprintf(text, sizeof(text), "%" PRIu32, number);
	(void)snprintf(name, sizeof(name), "%s/%" PRIu32 ".%" PRIu32 ".0.log", text, pid, tid);
	if (make_dir(truth->dir, text) < 0 ||
	    (pid != 0 && inherit_dictionary(truth->dir, text, pid) < 0) ||
	    truthlog_new(truth->dir, name, O_TRUNC, &file) < 0)
		return NULL;
	if (vec_push(&truth->logs, file) < 0) {
		file = truthlog_free(file);
		return NULL;
	}
	return file;
}

static struct truthlog *find_truthlog(struct truth *truth, uint32_t number, uint32_t pid,
				      uint32_t tid)
{
	const uint64_t key = (uint64_t)number << 33 | (uint64_t)(pid == 0) << 32 | tid;
	const uint64_t *known;
	struct truthlog *file;

	if (!truth->dir)
		return NULL;
	(void)pthread_mutex_lock(&truth->lock);
	known = map_get(&truth->by_name, key);
	file = known ? (struct truthlog *)(uintptr_t)*known : new_log(truth, number, pid, tid);
	if (!known && file && map_put(&truth->by_name, key, (uintptr_t)file) < 0)
		file = NULL;
	(void)pthread_mutex_unlock(&truth->lock);
	return file;
}

struct truthlog *truth_log(struct truth *truth, uint32_t number, uint32_t pid, uint32_t tid)
{
	return find_truthlog(truth, number, pid, tid);
}

struct truthlog *truth_kernel_log(struct truth *truth, uint32_t number, uint32_t cpu)
{
	return find_truthlog(truth, number, 0, cpu + 1);
}
