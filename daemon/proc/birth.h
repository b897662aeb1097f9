/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Birth
 *
 * When a process was started: together with its number, this is the identity of a process, since
 * another process may get the number later.
 */

#include <stdint.h>

/* Return: when the process @pid was started, in clock ticks since the machine booted; 0 if there is
 *         no such process, or it cannot be seen. */
uint64_t birth_of(uint32_t pid);

/* The same for the process whose folder in /proc is open at @pid_fd. */
uint64_t birth_at(int pid_fd);
