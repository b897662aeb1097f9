/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapname
 *
 * What the name of a mapping, as the kernel writes it into mmap records, says of what is mapped.
 */

#include <stdbool.h>
#include <string.h>

#include "base/base.h"

/* Return: whether it is memory of no file, private or shared: where JITs put their code. */
static inline bool mapname_is_memory(const char *name)
{
	static const char *const names[] = { "//", "/memfd:", "/SYSV", "/dev/zero",
					     "/anon_hugepage" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Return: whether it is the path of a file. */
static inline bool mapname_is_file(const char *name)
{
	return name[0] == '/' && name[1] != '[' && !mapname_is_memory(name);
}

/* Return: whether it is the code that the kernel maps into every process. */
static inline bool mapname_is_vdso(const char *name)
{
	return strcmp(name, "[vdso]") == 0;
}

/* What perf's build-id cache, and so a snapshot, calls the file of what is mapped by that name. */
static inline const char *mapname_in_cache(const char *name)
{
	return mapname_is_vdso(name) ? "vdso" : "elf";
}
