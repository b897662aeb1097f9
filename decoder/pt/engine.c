/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/engine.h"

#include <string.h>

static const struct engine_ops *const engines[] = { &engine_flow, &engine_insn };

const struct engine_ops *engine_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}
