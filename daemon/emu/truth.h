/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Truth
 *
 * The ground truth of a whole guest, in the form of log.h: one dictionary, "0.0.blocks", from which
 * all processes' inherit, and a log for each thread. The vCPUs' threads share it.
 */

#include <pthread.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/block.h"
#include "daemon/emu/log.h"
#include "decoder/util/map.h"
#include "decoder/util/vec.h"

struct truth {
	char *dir; /* NULL: nothing is logged */
	pthread_mutex_t lock;
	struct blocks blocks;
	struct log_file *dictionary;
	struct map by_tid; /* -> struct log_file * */
	VEC(struct log_file *) logs;
};

/* @dir may be NULL. Return: 0; or negative errno. */
_must_check_ int truth_init(struct truth *truth, const char *dir);

/* Write all that is pending, and say of each log that it is complete. */
void truth_end(struct truth *truth);

/* Find or make a block, and describe it. Return: as blocks_get(). */
_must_check_ int truth_block(struct truth *truth, uint64_t ip, const struct block_insn *insns,
			     size_t n, struct block **ret_block);

/*
 * Return: the log of a thread, made if it is new; NULL if nothing is logged, or out of memory. Of the
 * idle threads nothing is: each CPU has one, and all are number 0.
 */
struct log_file *truth_log(struct truth *truth, uint32_t pid, uint32_t tid);
