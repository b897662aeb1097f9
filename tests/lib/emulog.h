/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Truth log
 *
 * Reads a truth log of the software source (daemon/plugin/truthlog.h): which instructions each
 * thread retired, through all programs that its process executed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct emulog {
	const char *dir; /* borrowed */
	uint32_t pid;
	uint32_t tid;
	VEC(uint32_t) generations; /* of programs that have a log, in order */
	size_t n_read;             /* generations that have been read */
	bool over;
	bool cut; /* at the end: the process was killed, and its last instructions are missing */

	/* The generation that is being read. */
	VEC(struct mapfile) dictionaries; /* its own, and those of its ancestors */
	struct mapfile words;
	VEC(const uint8_t *) blocks; /* entries of the dictionaries, by id */

	/* The place of the reader. */
	size_t word;
	uint32_t block;
	uint32_t insn;
	uint32_t n; /* instructions of the block that retired */
	bool unreported;

	/* The blocks of generation n_read that hold the address sought last. */
	VEC(uint8_t) holders;
	uint64_t sought;
	size_t sought_in;
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
 * Open the log of one thread. @name is "PID.TID"; @dir must outlive the log.
 *
 * Return: 0; -ENOENT if there is none; -EBADMSG if a dictionary is damaged; or negative errno.
 */
_must_check_ int emulog_init(struct emulog *log, const char *dir, const char *name);
void emulog_deinit(struct emulog *log);

/*
 * Read the next instruction that the thread retired.
 *
 * Return: 0; EMULOG_END; -EBADMSG if the log is damaged; or negative errno.
 */
_must_check_ int emulog_next(struct emulog *log, struct emulog_insn *ret_insn);

/*
 * Read the next few instructions that the thread retired, up to the end of a block, without one
 * that need not be reported. They are @ret_n addresses, perhaps 0, at @ret_ips, which is not
 * aligned and stays the log's.
 *
 * Return: like emulog_next().
 */
_must_check_ int emulog_next_run(struct emulog *log, const uint8_t **ret_ips, size_t *ret_n);

/*
 * Skip all instructions before the next one at @ip, faster than emulog_next() would.
 *
 * Return: like emulog_next().
 */
_must_check_ int emulog_seek(struct emulog *log, uint64_t ip);

/*
 * List the threads that have a log in @dir.
 *
 * Return: 0 and @ret_names, a vector of "PID.TID", sorted, which emulog_names_deinit() frees; or
 * negative errno.
 */
struct emulog_names {
	VEC(char *) list;
};
_must_check_ int emulog_list(const char *dir, struct emulog_names *ret_names);
void emulog_names_deinit(struct emulog_names *names);
