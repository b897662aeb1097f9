/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapped code
 *
 * Which bytes each process of a recording could execute at which time. This reader of records and
 * files shares no code with the decoder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"

struct mapped;

/* Bytes as they were at an address, and for how long. */
struct mapped_bytes {
	const uint8_t *bytes; /* valid until mapped_free() */
	size_t size;
	uint64_t from; /* the first time at which they were there */
	uint64_t to;   /* the time from which something else was; UINT64_MAX: never */
};

/*
 * Read the snapshot directory, or perf.data file, at @path.
 *
 * Return: 0; or negative errno.
 */
_must_check_ int mapped_new(const char *path, struct mapped **ret_mapped);

/*
 * Use the code of a bare stream, with absolute paths, which process PTD_ID_UNKNOWN has mapped all
 * the time. Return: 0; or negative errno.
 */
_must_check_ int mapped_new_raw(const struct ptd_raw_code *code, size_t n_code,
				struct mapped **ret_mapped);
struct mapped *mapped_free(struct mapped *mapped);

/*
 * Find what process @pid has mapped at @address at @time.
 *
 * Return: 0; -ENOENT if nothing is mapped there, or its file is missing or not the one that was
 *          mapped.
 */
_must_check_ int mapped_find(const struct mapped *mapped, uint32_t pid, uint64_t time,
			     uint64_t address, struct mapped_bytes *ret_bytes);

/*
 * Check whether the @size bytes at @bytes, which are in no mapped file, can be JIT code or memory
 * that the snapshot has of @pid or of its ancestors by fork. Return: like jitted_have().
 */
bool mapped_jitted(const struct mapped *mapped, uint32_t pid, uint64_t time, uint64_t address,
		   const uint8_t *bytes, size_t size, uint64_t *from, uint64_t *to);

/*
 * Check whether they can be code of the kernel, which all processes have. Return: like
 * poked_have().
 */
bool mapped_kernel(const struct mapped *mapped, uint64_t time, uint64_t address,
		   const uint8_t *bytes, size_t size, uint64_t *from, uint64_t *to);

DEFINE_CLEANUP(struct mapped *, mapped_free);
