/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Budget
 *
 * How much address space decoding may take: what foreign bytes can make a decoder take is bounded,
 * and no honest input needs more.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Beside the inputs: what is known of them, code and debug files that lie elsewhere. */
#define BUDGET_BASE (UINT64_C(16) << 30)

/*
 * Return: the bytes that the regular file @path has, or all those in the directory @path; 0 if that
 * cannot be said. A file counts for no more than what it takes up on the disk allows.
 */
uint64_t budget_size_of(const char *path);

/* Return: the address space for inputs of @inputs bytes and temporary files of @spills bytes. */
uint64_t budget_for(uint64_t inputs, uint64_t spills);
