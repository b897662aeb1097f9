/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Address filter
 *
 * The restriction of PT to some code: the string that `perf record --filter` leaves in the record
 * AUXTRACE_INFO, such as "filter 0x1139/0x2a@/usr/bin/x". Each part of it is a range of a file, or
 * a range of the kernel's addresses if it names no file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* A CPU has no more ranges; a string with more parts is refused. */
#define ADDRFILTER_PARTS_MAX 4

struct addrfilter {
	bool stops;       /* PT stops when this code is reached; else only this code is traced */
	uint64_t address; /* an offset in the file, or an address of the kernel */
	uint64_t size;    /* not 0 */
	const char *path; /* in the text, without a NUL; NULL: the range is of kernel addresses */
	size_t path_size;
};

struct addrfilters {
	struct addrfilter parts[ADDRFILTER_PARTS_MAX];
	size_t n;
};

/*
 * Parse the filter of @size bytes at @text, which must outlive @ret_filters.
 *
 * Return: 0; -EBADMSG if it is no filter that perf writes for PT.
 */
_must_check_ int addrfilter_read(const char *text, size_t size, struct addrfilters *ret_filters);

/*
 * Find the addresses of the code of @filter in a mapping of @size bytes at @start, whose first byte
 * is at @offset of the file.
 *
 * Return: whether the mapping has such code; then it lies from @ret_first to @ret_last, inclusive.
 */
bool addrfilter_place(const struct addrfilter *filter, uint64_t start, uint64_t size,
		      uint64_t offset, uint64_t *ret_first, uint64_t *ret_last);
