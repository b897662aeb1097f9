/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Truth log
 *
 * The ground truth of a recording, for tests: which instructions each thread retired. The log is a
 * directory. All numbers in it are little endian. In the names of its files PID is the number of a
 * process and GEN counts, from 0, the programs that processes with this number executed:
 *
 *	PID.GEN.blocks	For block 0, 1, 2 …: u32 n, u32 0, u64 address of each of its n
 *			instructions. The file of a forked child begins with u32
 *			TRUTHLOG_INHERITED, u32 n, u32 PID, u32 GEN: its first n blocks are those
 *			of that other file.
 *	PID.TID.GEN.log	u32 words, in the order in which the thread ran:
 *		id			The whole block retired.
 *		TRUTHLOG_PARTIAL id n	Only the first n instructions of the block retired.
 *		TRUTHLOG_UNREPORTED id	The whole block retired, and its last instruction (int3,
 *					int n) is one that a decoder like libipt does not report:
 *					the packets are FUP, TIP.PGD.
 *		TRUTHLOG_END		The thread ended or executed another program while the
 *					plugin watched. Without this word the thread was killed,
 *					and what it ran last is missing. Words that follow belong
 *					to another thread of the process that got the same TID.
 *
 * An instruction appears once for each time that it retired while packets were on. A repeated
 * string instruction retires once, when it is done. Files are opened for each write only, because
 * the recorded program may close descriptors that are not its own.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define TRUTHLOG_PARTIAL     UINT32_MAX
#define TRUTHLOG_UNREPORTED  (UINT32_MAX - 1)
#define TRUTHLOG_END         (UINT32_MAX - 2)
#define TRUTHLOG_INHERITED   UINT32_MAX
#define TRUTHLOG_BUFFER_SIZE 16384 /* words */

struct block;

/* A file that is appended to. */
struct truthlog {
	char *path; /* absolute */
	uint32_t n;
	uint32_t words[TRUTHLOG_BUFFER_SIZE];
};

/*
 * Make the file DIR/@name. @flag says what to do with an existing file: O_TRUNC, O_EXCL or
 * O_APPEND.
 *
 * Return: 0; or negative errno, -EEXIST if the file exists and @flag is O_EXCL.
 */
_must_check_ int truthlog_new(const char *dir, const char *name, int flag,
			      struct truthlog **ret_file);

/* Write what is pending, and free. Return: NULL. */
struct truthlog *truthlog_free(struct truthlog *file);

/* Write what is pending. Return: 0; or negative errno, and what could not be written is dropped. */
int truthlog_flush(struct truthlog *file);

/* Free without writing, for a forked child: its parent writes what is pending. Return: NULL. */
struct truthlog *truthlog_forget(struct truthlog *file);

/* Begin a .blocks file: the blocks before @n are those of process @pid, generation @generation. */
void truthlog_inherit(struct truthlog *file, uint32_t n, uint32_t pid, uint32_t generation);

/* Describe @block, whose id must be the next, in a .blocks file. */
void truthlog_describe(struct truthlog *file, const struct block *block);

/* Write words to a .log file; see above. If @file is NULL, nothing is logged. */
void truthlog_partial(struct truthlog *file, uint32_t id, uint32_t n);
void truthlog_unreported(struct truthlog *file, uint32_t id);

/* Write that the log is complete, and what is pending. */
void truthlog_end(struct truthlog *file);

static inline void truthlog_word(struct truthlog *file, uint32_t word)
{
	if (file->n == TRUTHLOG_BUFFER_SIZE)
		(void)truthlog_flush(file);
	file->words[file->n++] = word;
}

static inline void truthlog_whole(struct truthlog *file, uint32_t id)
{
	if (file)
		truthlog_word(file, id);
}
