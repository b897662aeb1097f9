/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The registry: a new sink is a file of its own and one line here. */

#include "ptd/sink.h"

#include <string.h>

#include "decoder/sink/sinks.h"

const struct ptd_sink_ops *const ptd_sinks[] = {
	&sink_text, &sink_summary, &sink_drmemtrace, &sink_addresses, &sink_sideband, NULL,
};

const struct ptd_sink_ops *ptd_sink_find(const char *name)
{
	for (const struct ptd_sink_ops *const *s = ptd_sinks; *s; s++)
		if (strcmp((*s)->name, name) == 0)
			return *s;
	return NULL;
}
