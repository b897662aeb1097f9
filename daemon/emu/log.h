/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Log
 *
 * The ground truth of a recording, for tests: which instructions retired, per thread. In the log's
 * directory lie, all numbers little endian, and GEN counting, from 0, the programs that the process
 * executed whose number is PID, and those of processes before it that had the same number:
 *
 *	PID.GEN.blocks	for block 0, 1, 2 …: u32 n, u32 0, u64 address of each of its n
 *			instructions; before them in that of a forked child: u32 LOG_INHERITED, u32
 *			n, u32 PID, u32 GEN: its first n blocks are those of this dictionary
 *	PID.TID.GEN.log	u32 words, in the order in which the thread ran:
 *		id			the whole block retired
 *		LOG_PARTIAL id n	only its first n instructions did
 *		LOG_UNREPORTED id	the whole block did, and its last instruction is one that
 *					a decoder like libipt does not report: it sees FUP, TIP.PGD
 *					(int3, int n)
 *		LOG_END			last, if the thread ended or executed another program
 *					in our sight; else it was killed, and what it ran last is
 *					missing here. What follows is of another thread of the
 *					process that was given the same number
 *
 * An instruction stands here once for each time that it retired with packets on; a repeated string
 * instruction retires once, when it is done. Files are opened for each write only, since the
 * recorded program may close descriptors that are not its own.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define LOG_PARTIAL     UINT32_MAX
#define LOG_UNREPORTED  (UINT32_MAX - 1)
#define LOG_END         (UINT32_MAX - 2)
#define LOG_INHERITED   UINT32_MAX
#define LOG_BUFFER_SIZE 16384 /* words */

struct block;

/* A file that is appended to. */
struct log_file {
	char *path; /* absolute */
	uint32_t n;
	uint32_t words[LOG_BUFFER_SIZE];
};

/*
 * Make the log DIR/@name. @flag is for one that is there: O_TRUNC, O_EXCL, or O_APPEND.
 *
 * Return: 0; or negative errno, -EEXIST if there is one and must not be.
 */
_must_check_ int log_file_new(const char *dir, const char *name, int flag,
			      struct log_file **ret_file);
/* Write what is pending, free. Return: NULL. */
struct log_file *log_file_free(struct log_file *file);
/* Write what is pending. Return: 0 or negative errno; what could not be written is dropped. */
int log_file_flush(struct log_file *file);

/* Free without writing: in a forked child, what is pending is its parent's. Return: NULL. */
struct log_file *log_file_forget(struct log_file *file);

/* In a .blocks file, first: the blocks before @n are those of process @pid, generation
 * @generation. */
void log_inherit(struct log_file *file, uint32_t n, uint32_t pid, uint32_t generation);
/* Describe @block in a .blocks file; its id must be the next. */
void log_describe(struct log_file *file, const struct block *block);

/* In a .log file. @file may be NULL: then nothing is logged. */
void log_partial(struct log_file *file, uint32_t id, uint32_t n);
void log_unreported(struct log_file *file, uint32_t id);
/* The log is complete; and write it. */
void log_end(struct log_file *file);

static inline void log_word(struct log_file *file, uint32_t word)
{
	if (file->n == LOG_BUFFER_SIZE)
		(void)log_file_flush(file);
	file->words[file->n++] = word;
}

static inline void log_whole(struct log_file *file, uint32_t id)
{
	if (file)
		log_word(file, id);
}
