/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Truth
 *
 * The ground truth of a whole guest: several truth logs (truthlog.h), log N in DIR/N. The guest
 * says when a new log begins. User code is logged per thread, kernel code per CPU. All logs share
 * the dictionary "0.0.blocks", from which those of all processes inherit. The threads of the vCPUs
 * share this object.
 */

#include <pthread.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/block.h"
#include "daemon/plugin/truthlog.h"
#include "util/map.h"
#include "util/vec.h"

struct truth {
	char *dir; /* NULL: nothing is logged */
	pthread_mutex_t lock;
	struct blocks blocks;
	struct truthlog *dictionary;
	/* Number of the log, whether of a CPU, tid or CPU -> struct truthlog *. */
	struct map by_name;
	VEC(struct truthlog *) logs;
};

/* @dir may be NULL. Return: 0; or negative errno. */
_must_check_ int truth_init(struct truth *truth, const char *dir);

/* Write what is pending, and mark each log as complete. */
void truth_end(struct truth *truth);

/* Find or make a block, and describe it in the dictionary. Return: as blocks_get(). */
_must_check_ int truth_block(struct truth *truth, uint64_t ip, const struct block_insn *insns,
			     size_t n, struct block **ret_block);

/*
 * Return: the part of log @number for a thread, which is made if it does not exist; NULL if nothing
 *         is logged, or without memory.
 */
struct truthlog *truth_log(struct truth *truth, uint32_t number, uint32_t pid, uint32_t tid);

/* Return: the part for kernel code that @cpu runs, which is logged as process 0, thread
 *         @cpu + 1. */
struct truthlog *truth_kernel_log(struct truth *truth, uint32_t number, uint32_t cpu);
