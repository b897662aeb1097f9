/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Judge: names
 *
 * The tables beside a trace that name what its markers have numbers of: funclist.log the functions
 * of markers 4, symbols.tsv the symbols of markers 101.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/map.h"

/* The numbers of one table. */
struct names {
	char *path; /* NULL: there is no such table */
	struct map numbers;
};

/*
 * Read the table @file_name of the directory @dir, if there is one: lines that begin with a number
 * and @separator. A table may begin with a line that has none. Others, and a number that comes
 * twice, are reported by @fault, with the number of the line.
 *
 * Return: 0, or negative errno, with @reterr_path naming what could not be read.
 */
_must_check_ int names_read(struct names *names, const char *dir, const char *file_name,
			    char separator,
			    void (*fault)(void *userdata, const char *path, size_t line),
			    void *userdata, char **reterr_path);
void names_deinit(struct names *names);

/* Return: whether @number may be used: the table has it, or there is no table. */
static inline bool names_have(const struct names *names, uint64_t number)
{
	return !names->path || map_get(&names->numbers, number);
}
