/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Address filter
 *
 * What code the PT of a perf.data file was restricted to: the string that `perf record --filter`
 * leaves in AUXTRACE_INFO, such as "filter 0x1139/0x2a@/usr/bin/x". Each part is a range of a file,
 * or of the kernel's addresses if it names none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* More parts than a CPU has ranges are refused. */
#define ADDRFILTER_PARTS_MAX 4

struct addrfilter {
	bool stops;       /* PT stops where this code is reached; else it is only of this code */
	uint64_t address; /* in the file; or the kernel's */
	uint64_t size;    /* not 0 */
	const char *path; /* in the text's bytes, not terminated; NULL: the kernel's addresses */
	size_t path_size;
};

struct addrfilters {
	struct addrfilter parts[ADDRFILTER_PARTS_MAX];
	size_t n;
};

/*
 * Take the @size bytes at @text apart, which must outlive @ret_filters.
 *
 * Return: 0; -EBADMSG if it is nothing that perf writes for PT.
 */
_must_check_ int addrfilter_read(const char *text, size_t size, struct addrfilters *ret_filters);

/*
 * Where is the code of @filter, of a mapping of @size bytes at @start of its file's from @offset
 * on?
 *
 * Return: whether there is any, and @ret_first and @ret_last, which is inclusive.
 */
bool addrfilter_place(const struct addrfilter *filter, uint64_t start, uint64_t size,
		      uint64_t offset, uint64_t *ret_first, uint64_t *ret_last);
