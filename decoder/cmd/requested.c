/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/requested.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

static int wrong(const char *what, const char *value)
{
	log_error("%s: \"%s\". Try: ptdecode --help", what, value);
	return -EINVAL;
}

int requested_add(struct requested_outputs *outputs, char *format, const struct ptd_sink_ops *also)
{
	char *options = strchr(format, ':');
	const struct ptd_sink_ops *ops;
	struct requested_output *o;
	size_t n = 0;

	if (options)
		*options++ = '\0';
	ops = also && strcmp(format, also->name) == 0 ? also : ptd_sink_find(format);
	if (!ops)
		return wrong("no such format", format);
	if (outputs->n == REQUESTED_MAX)
		return wrong("too many formats", format);
	o = &outputs->items[outputs->n++];
	*o = (struct requested_output){
		.ops = ops, .config = { .size = sizeof(o->config), .fd = -1, .options = o->options }
	};
	for (char *option; (option = strsep(&options, ","));) {
		if (n == REQUESTED_OPTIONS_MAX)
			return wrong("too many options of a format", option);
		if (!ptd_sink_takes_option(ops, option))
			return wrong("no such option of the format", option);
		o->options[n++] = option;
	}
	for (const struct ptd_sink_option *a = ops->options; a && a->name; a++)
		if (a->is_required && !ptd_sink_option(&o->config, a->name))
			return wrong("the format needs an option", a->name);
	return 0;
}

int requested_set_path(struct requested_outputs *outputs, const char *path)
{
	if (outputs->n == 0)
		return wrong("-o belongs behind the -f it is for", path);
	if (outputs->items[outputs->n - 1].path)
		return wrong("one -o too many", path);
	outputs->items[outputs->n - 1].path = path;
	return 0;
}

int requested_check(const struct requested_outputs *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (outputs->items[i].ops->directories && !outputs->items[i].path)
			return wrong("a directory must be named by -o for format",
				     outputs->items[i].ops->name);
	return 0;
}
