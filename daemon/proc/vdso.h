/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * vDSO
 *
 * Code that the kernel maps into each process, for system calls that do not need to enter the
 * kernel. It is an ELF file, with build-id and symbols, in memory only.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

/* The largest size in bytes that is accepted. Today the vDSO has two pages. */
#define VDSO_SIZE_MAX ((size_t)64 << 10)

/* Copy the daemon's own vDSO into an unnamed file. Return: 0 and the descriptor, which is the
 * caller's; -ENOENT if the kernel has no vDSO; or another negative errno. */
_must_check_ int vdso_open(int *ret_fd);

/* Return: whether the @size bytes equal the daemon's own vDSO. The vDSO of a program that is not
 *         for 64-bit x86 differs, and so does one that the program wrote to. */
bool vdso_equals(const void *bytes, size_t size);
