/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/beside.h"

#define NAME "ptd-emu.so"

int plugin_find(char **ret_path)
{
	static const char *const places[] = { NAME, "../lib/ptd/" NAME };
	const char *from_env = getenv("PTD_EMU_SO");
	char path[PATH_MAX];
	int r;

	if (from_env && from_env[0]) {
		*ret_path = realpath(from_env, NULL);
		if (!*ret_path)
			*ret_path = strdup(from_env);
		return *ret_path ? 0 : -ENOMEM;
	}
	r = beside_find(places, ARRAY_LEN(places), F_OK, path);
	if (r < 0)
		return r;
	*ret_path = strdup(path);
	return *ret_path ? 0 : -ENOMEM;
}
