/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Budget
 *
 * How much address space decoding may take. The limit stops foreign bytes from making the decoder
 * take all memory; no honest input needs more.
 */

#include <stddef.h>
#include <stdint.h>

/* In bytes, for all but the inputs: the decoder's tables, and code and debug files elsewhere. */
#define BUDGET_BASE (UINT64_C(16) << 30)

/*
 * Return: the size in bytes of the regular file @path, or of all regular files below the directory
 *         @path; 0 if it cannot be found out. A file with holes counts for at most a fixed multiple
 *         of the disk space that it takes up.
 */
uint64_t budget_size_of(const char *path);

/*
 * In bytes, for each thread but the first: its stack, malloc()'s arena with what is in it, and what
 * is decoded ahead for it.
 */
#define BUDGET_THREAD (UINT64_C(1) << 30)

/*
 * Return: the bytes of address space that inputs of @inputs bytes, temporary files of @spills bytes
 *         and @n_threads threads need.
 */
uint64_t budget_for(uint64_t inputs, uint64_t spills, size_t n_threads);
