/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Claimant
 *
 * The process that, by a record, has a file mapped. Records of the kernel are true. Records of the
 * software source are written by the recorded programs, which could name any process and any file,
 * even files that they may not read. So such a record is believed about a process only if that
 * process writes records, too; any other process is treated as if it had ended. And what such a
 * process does not have mapped is read only if everybody may read it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/base.h"

/* Who writes the records. */
struct claims {
	/* Return: whether the process writes records. Called in any thread. NULL: the kernel
	 * writes them. */
	bool (*is_writer)(void *userdata, uint32_t pid);
	void *userdata; /* borrowed */
};

struct claimant {
	int pid_fd;    /* /proc/PID; -1: the process has ended */
	bool is_true;  /* the kernel says that the process has the file mapped */
	bool has_user; /* it is known who started the process: */
	uid_t user;
};

/* Find the process @pid of a record. @claims is NULL if the kernel wrote the record. */
struct claimant claimant_find(const struct claims *claims, uint32_t pid);
void claimant_deinit(struct claimant *claimant);

/* Get the user with whose rights, and no others, the process runs. Return: 0; -EPERM if it has
 * those of several users; or -ESRCH if it has ended. */
_must_check_ int claimant_user(const struct claimant *claimant, uid_t *ret_uid);

/* Return: whether the process runs with the rights of this user only. */
bool claimant_user_is(const struct claimant *claimant, uid_t uid);

/* Find the user who started the process: its real one, which is not root if a user executed a
 * set-user-id program. Return: whether the process is there. */
bool claimant_real_user(const struct claimant *claimant, uid_t *ret_uid);

/* Return: whether the file @st may be read for the process: everyone may read it; or the user who
 * is known to have started the process owns it and may read it; or, if the kernel wrote the record,
 * the user of the process owns it and may read it. A forged record can name any process of the
 * file's owner. */
bool claimant_may_read(const struct claimant *claimant, const struct stat *st);
