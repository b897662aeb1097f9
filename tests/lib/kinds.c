/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/kinds.h"

#include <string.h>

#include "base/base.h"
#include "decoder/sink/sinks.h"

static const struct sink_ops *const kinds[] = {
	&sink_text,   &sink_summary,   &sink_calls,      &sink_functions, &sink_latency,
	&sink_stacks, &sink_crash,     &sink_branches,   &sink_probes,    &sink_autofdo,
	&sink_bolt,   &sink_collapsed, &sink_pprof,      &sink_chrome,    &sink_callgrind,
	&sink_fxt,    &sink_html,      &sink_drmemtrace, &sink_addresses, &sink_sideband,
	&sink_xray,   &sink_ovni,      &sink_lcov,
};

const struct sink_ops *sink_at(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i] : NULL;
}

const struct sink_ops *sink_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	return NULL;
}

int sink_open(const struct sink_ops *ops, const char *path, const struct ptd_info *info,
	      const char *const *options, struct sink **ret_sink)
{
	struct sink_config config = {
		.info = info,
		.fd = sink_target_open(ops, path),
		.is_emptied = path,
		.options = options,
	};
	int r;

	if (config.fd < 0)
		return config.fd;
	r = sink_new(ops, &config, ret_sink, NULL);
	if (r < 0)
		(void)fd_close(config.fd);
	return r;
}
