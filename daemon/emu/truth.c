/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/truth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int truth_init(struct truth *truth, const char *dir)
{
	*truth = (struct truth){};
	(void)pthread_mutex_init(&truth->lock, NULL);
	if (!dir)
		return 0;
	truth->dir = strdup(dir);
	if (!truth->dir)
		return -ENOMEM;
	return log_file_new(dir, "0.0.blocks", &truth->dictionary);
}

void truth_end(struct truth *truth)
{
	(void)pthread_mutex_lock(&truth->lock);
	for (size_t i = 0; i < truth->logs.n; i++)
		log_end(truth->logs.items[i]);
	if (truth->dictionary)
		(void)log_file_flush(truth->dictionary);
	(void)pthread_mutex_unlock(&truth->lock);
}

int truth_block(struct truth *truth, uint64_t ip, const struct block_insn *insns, size_t n,
		struct block **ret_block)
{
	int r;

	(void)pthread_mutex_lock(&truth->lock);
	r = blocks_get(&truth->blocks, ip, insns, n, ret_block);
	if (r == BLOCKS_NEW && truth->dictionary)
		log_describe(truth->dictionary, *ret_block);
	(void)pthread_mutex_unlock(&truth->lock);
	return r;
}

static int inherit(const struct truth *truth, uint32_t pid)
{
	struct log_file *file;
	char name[32];
	int r;

	(void)snprintf(name, sizeof(name), "%" PRIu32 ".0.blocks", pid);
	r = log_file_new(truth->dir, name, &file);
	if (r < 0)
		return r;
	log_inherit(file, UINT32_MAX, 0, 0);
	file = log_file_free(file);
	return 0;
}

static struct log_file *new_log(struct truth *truth, uint32_t pid, uint32_t tid)
{
	struct log_file *file;
	char name[64];

	(void)snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu32 ".0.log", pid, tid);
	if (inherit(truth, pid) < 0 || log_file_new(truth->dir, name, &file) < 0)
		return NULL;
	if (vec_push(&truth->logs, file) < 0) {
		file = log_file_free(file);
		return NULL;
	}
	return map_put(&truth->by_tid, tid, (uintptr_t)file) < 0 ? NULL : file;
}

struct log_file *truth_log(struct truth *truth, uint32_t pid, uint32_t tid)
{
	const uint64_t *known;
	struct log_file *file;

	if (!truth->dir || tid == 0)
		return NULL;
	(void)pthread_mutex_lock(&truth->lock);
	known = map_get(&truth->by_tid, tid);
	file = known ? (struct log_file *)(uintptr_t)*known : new_log(truth, pid, tid);
	(void)pthread_mutex_unlock(&truth->lock);
	return file;
}
