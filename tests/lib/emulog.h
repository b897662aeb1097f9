/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Emulog
 *
 * Reads the ground truth that the software PT source logs (daemon/emu/log.h): which instructions
 * each thread retired.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/mapfile.h"
#include "decoder/util/vec.h"

struct emulog {
	struct mapfile blocks;
	struct mapfile words;
	VEC(size_t) block_at; /* offset of each block in the dictionary */

	/* Where it stands. */
	size_t word;
	uint32_t block;
	uint32_t insn;
	uint32_t n; /* instructions of the block that retired */
	bool unreported;
};

/* One instruction that retired. */
struct emulog_insn {
	uint64_t ip;
	bool unreported; /* an int3 or int n: a decoder need not report it */
};

enum {
	EMULOG_END = 1,
};

/*
 * Open the log of one thread. @name is "PID.TID".
 *
 * Return: 0; -EBADMSG if the dictionary is damaged; or negative errno.
 */
_must_check_ int emulog_init(struct emulog *log, const char *dir, const char *name);
void emulog_deinit(struct emulog *log);

/*
 * The next instruction that the thread retired.
 *
 * Return: 0; EMULOG_END; or -EBADMSG if the log is damaged.
 */
_must_check_ int emulog_next(struct emulog *log, struct emulog_insn *ret_insn);
