/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sysfs file
 *
 * The small files in which sysfs and tracefs describe what perf can do: a text, a number, or where
 * a term lies in perf_event_attr.config.
 */

#include <stdint.h>

#include "base/base.h"

#define SYSFILE_TEXT_SIZE 64u

/* Each function reads the file @name in the directory @dir_fd. Return: 0; -EBADMSG if the file has
 * something else; or another negative errno. */

/* Read a whole file, without white space at its end. */
_must_check_ int sysfile_text(int dir_fd, const char *name, char ret_text[SYSFILE_TEXT_SIZE]);

/* Read a number of base @base. */
_must_check_ int sysfile_number(int dir_fd, const char *name, int base, uint32_t *ret_number);

/* Read the bits of a term, such as "config:14-17" or "config:0". */
_must_check_ int sysfile_mask(int dir_fd, const char *name, uint64_t *ret_mask);

/* Read a number of base @base at @text. Return: what follows it; NULL if there is none. */
const char *sysfile_scan(const char *text, int base, uint32_t *ret_number);
