/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <stdint.h>
#include <stdlib.h>

#include "daemon/config.h"

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
	if (c.n_cpus > CONFIG_CPUS_MAX || c.pt.psb_period > 15 || c.pt.noretcomp > 1 ||
	    c.aux_size < 4096 || c.aux_size > CONFIG_SIZE_MAX || (c.aux_size & (c.aux_size - 1)) ||
	    c.switch_size < 4096 || c.task_size < 4096)
		abort();
	return 0;
}
