/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memcopy
 *
 * Anonymous executable memory of running processes, read through /proc/PID/mem: code of JIT
 * compilers, which no file holds.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Takes a piece of memory without holes. Return: 0, or negative errno, which ends the reading. */
typedef int (*memcopy_put_fn)(void *userdata, uint64_t address, const void *bytes, size_t size);

/*
 * Read @size bytes at @start of the memory open at @fd (/proc/PID/mem), at most @n_max of them that
 * are not zero. Pages that are not there, or all zero, are left out: no code is lost with them.
 *
 * Return: how many bytes were given to @put; or the negative errno of @put, or -ENOMEM.
 */
_must_check_ int64_t memcopy_read(int fd, uint64_t start, uint64_t size, uint64_t n_max,
				  memcopy_put_fn put, void *userdata);
