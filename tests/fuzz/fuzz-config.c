/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <stdint.h>
#include <stdlib.h>

#include "daemon/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void warn(const char *file, unsigned line, const char *message)
{
	if (!file || line == 0 || !message[0])
		abort();
}

/* Whatever is in the file, the settings stay within what the rest of ptd relies on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c;

	config_init(&c);
	config_parse(&c, "fuzz", (const char *)data, size, warn);
	for (size_t i = 0; i < _PTTERMS; i++)
		if (c.pt.values[i] < PTTERMS_UNSET || c.pt.values[i] > 15)
			abort();
	if (c.n_cpus > CONFIG_CPUS_MAX || c.trace > CONFIG_TRACE_ALL ||
	    c.pt.values[PTTERM_NORETCOMP] > 1 || c.aux_size < 4096 ||
	    c.aux_size > CONFIG_SIZE_MAX || (c.aux_size & (c.aux_size - 1)) ||
	    c.switch_size < 4096 || c.task_size < 4096)
		abort();
	return 0;
}
