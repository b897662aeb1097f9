/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The static probes of a foreign ELF file: in order, with texts that end. */

#include <stdlib.h>
#include <string.h>

#include "decoder/symbol/stapsdt.h"
#include "decoder/util/filebytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct filebytes *file;
	struct stapsdt probes;

	if (size == 0)
		return 0;
	if (filebytes_new_in_memory(data, size, &file) < 0 || stapsdt_read(file, &probes) < 0)
		abort();
	for (size_t i = 0; i < probes.n; i++) {
		const struct ptd_probe *p = &probes.items[i];

		if (strlen(p->provider) + strlen(p->name) + strlen(p->arguments) > size ||
		    (i > 0 && p->address < p[-1].address) || (p->is_guarded && !p->semaphore))
			abort();
	}
	stapsdt_deinit(&probes);
	filebytes_unref(file);
	return 0;
}
