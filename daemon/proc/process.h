/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Process
 *
 * Whose a process is, and when it was started, as the kernel says. The owner of /proc/PID would not
 * do: root owns it if the process has disabled core dumps.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

/* Return: a descriptor of /proc/PID (O_PATH), which is the caller's and never leads to another
 *         process that gets the number later; -1 if the process has ended. */
int process_open(uint32_t pid);

/* Get the user with whose rights, and no others, the process runs. Return: 0; -EPERM if it has
 * those of several users; or -ESRCH if it has ended. */
_must_check_ int process_user_of(uint32_t pid, uid_t *ret_uid);

/* Return: whether the process @pid_fd runs with the rights of this user only. */
bool process_user_is(int pid_fd, uid_t uid);

/* Get the user who started the process: its real one, which is not root if a user executed a
 * set-user-id program. Return: 0; or -ESRCH if it has ended. */
_must_check_ int process_real_user_of(uint32_t pid, uid_t *ret_uid);

#define PROCESS_STAT_SIZE 1024u

/* Read the file "stat" of a process, which is @path under @at. Return: what follows the name: its
 * state, a letter, and the fields from the 4th on; NULL if the process has ended. */
const char *process_stat(int at, const char *path, char ret_text[static PROCESS_STAT_SIZE]);

/* Return: when the process @pid_fd was started, in clock ticks since the machine was; 0: not known.
 */
uint64_t process_birth(int pid_fd);
