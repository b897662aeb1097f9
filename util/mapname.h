/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapping names
 *
 * What the name of a mapping in the kernel's mmap records says about what is mapped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"

/* Return: whether it is memory without a file, private or shared, where JITs put their code. */
static inline bool mapname_is_memory(const char *name)
{
	static const char *const names[] = { "//", "/memfd:", "/SYSV", "/dev/zero",
					     "/anon_hugepage" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Return: whether it is memory that may be read and written like a file. */
static inline bool mapname_is_memfd(const char *name)
{
	return strncmp(name, "/memfd:", strlen("/memfd:")) == 0;
}

/* Return: whether it is the path of a file. */
static inline bool mapname_is_file(const char *name)
{
	return name[0] == '/' && name[1] != '[' && !mapname_is_memory(name);
}

/* Return: whether the kernel copies instructions there, to step them for a uprobe. */
static inline bool mapname_is_uprobes(const char *name)
{
	return strcmp(name, "[uprobes]") == 0;
}

/* Return: whether it is the code that the kernel maps into every process. */
static inline bool mapname_is_vdso(const char *name)
{
	return strcmp(name, "[vdso]") == 0;
}

/*
 * Return: whether it is the usual name of a jitdump, .../jit-<digits>.dump. A JIT compiler maps its
 *         jitdump so that a record says where it lies. Some give it other names: where the file can
 *         be read, its first bytes say it (jitmagic.h).
 */
static inline bool mapname_is_jitdump(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	size_t n_digits;

	if (strncmp(last, "jit-", 4) != 0)
		return false;
	n_digits = strspn(last + 4, "0123456789");
	return n_digits > 0 && strcmp(last + 4 + n_digits, ".dump") == 0;
}

/*
 * Return: the name in perf's build-id cache, and in a snapshot, of the file that is mapped as
 * @name.
 */
static inline const char *mapname_in_cache(const char *name)
{
	return mapname_is_vdso(name) ? "vdso" : "elf";
}
