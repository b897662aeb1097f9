/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory copy
 *
 * Reads anonymous executable memory of running processes through /proc/PID/mem: code of JIT
 * compilers, which is in no file.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Gets a piece of memory without holes. Return: 0, or negative errno, which ends the reading. */
typedef int (*memcopy_put_fn)(void *userdata, uint64_t address, const void *bytes, size_t size);

/*
 * Read @size bytes at @start of the memory @fd (/proc/PID/mem), and pass at most @n_max of them to
 * @put. Pages that are not mapped, or all zeros, are left out: they have no code.
 *
 * Return: how many bytes were passed to @put; or the negative errno of @put, or -ENOMEM.
 */
_must_check_ int64_t memcopy_read(int fd, uint64_t start, uint64_t size, uint64_t n_max,
				  memcopy_put_fn put, void *userdata);

/*
 * Read those of the @size bytes at @start that the process can execute now; its other memory is not
 * looked at. A JIT compiler often makes code writable, and not executable, for a moment, so
 * this waits some milliseconds for memory to become executable.
 *
 * @pid_fd: the process's folder in /proc; borrowed
 *
 * Return: as memcopy_read(); or negative errno if the process has ended, or cannot be looked into.
 */
_must_check_ int64_t memcopy_read_executable(int pid_fd, uint64_t start, uint64_t size,
					     uint64_t n_max, memcopy_put_fn put, void *userdata);
