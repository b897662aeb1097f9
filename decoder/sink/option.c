/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/option.h"

#include <errno.h>
#include <string.h>

/* Return: 0 and the end of the number in @ret_end; or -EINVAL. */
static int parse(const char *text, uint64_t *ret_value, const char **ret_end)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || text[0] < '0' || text[0] > '9')
		return -EINVAL;
	*ret_value = value;
	*ret_end = end;
	return 0;
}

int option_number(const struct sink_config *config, const char *name, uint64_t *ret_value)
{
	const char *text = sink_option(config, name), *end;
	uint64_t value;

	if (!text)
		return 0;
	if (parse(text, &value, &end) < 0 || *end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int option_duration(const struct sink_config *config, const char *name, uint64_t *ret_value)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }
	};
	const size_t n_units = config->info->clock == PTD_CLOCK_NS ? ARRAY_LEN(units) : 1;
	const char *text = sink_option(config, name), *end;
	uint64_t value;

	if (!text)
		return 0;
	if (parse(text, &value, &end) < 0 || config->info->clock == PTD_CLOCK_NONE)
		return -EINVAL;
	for (size_t i = 0; i < n_units; i++)
		if (strcmp(end, units[i].name) == 0)
			return __builtin_mul_overflow(value, units[i].ns, ret_value) ? -EINVAL : 0;
	return -EINVAL;
}
