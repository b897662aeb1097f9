/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Truth
 *
 * The ground truth of a whole guest: several logs in the form of log.h, N in DIR/N, as the guest
 * says when a new one begins. User code is logged per thread, kernel code per CPU. All have one
 * dictionary, "0.0.blocks", from which all processes' inherit. The vCPUs' threads share it.
 */

#include <pthread.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/block.h"
#include "daemon/emu/truthlog.h"
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

/* Write all that is pending, and say of each log that it is complete. */
void truth_end(struct truth *truth);

/* Find or make a block, and describe it. Return: as blocks_get(). */
_must_check_ int truth_block(struct truth *truth, uint64_t ip, const struct block_insn *insns,
			     size_t n, struct block **ret_block);

/*
 * Return: a thread's part of log @number, made if it is new; NULL if nothing is logged, or out of
 * memory.
 */
struct truthlog *truth_log(struct truth *truth, uint32_t number, uint32_t pid, uint32_t tid);

/* The same of the kernel code that @cpu runs: it is called that of process 0, thread @cpu + 1. */
struct truthlog *truth_kernel_log(struct truth *truth, uint32_t number, uint32_t cpu);
