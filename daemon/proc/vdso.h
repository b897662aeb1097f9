/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * vDSO
 *
 * The code that the kernel maps into each process, for system calls that need not enter it. It is
 * an ELF file, with build-id and symbols, that is in memory only.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

/* Bytes that one may have. Today it is two pages. */
#define VDSO_SIZE_MAX ((size_t)64 << 10)

/* A copy of our own, without a name. Return: 0 and the descriptor, the caller's; -ENOENT if the
 * kernel has none; or another negative errno. */
_must_check_ int vdso_open(int *ret_fd);

/* Are the @size bytes our own? Those of a program that is not for 64-bit x86 are not, nor those of
 * one that wrote to them. */
bool vdso_equals(const void *bytes, size_t size);
