/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A foreign core file: its notes, and the memory that it has. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(core_closep) struct core *core = NULL;
	_cleanup_(freep) char *message = NULL;
	struct filebytes *file;
	/* A copy of just this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size), bytes[64];

	if (copy && size > 0)
		memcpy(copy, data, size);
	if (!copy || size == 0 || filebytes_new_in_memory(copy, size, &file) < 0) {
		free(copy);
		return 0;
	}
	if ((core_open_bytes(file, "core", &core, &message) == 0) != (core != NULL))
		abort();
	for (size_t i = 0; core && i < core->segments.n && i < 1000; i++) {
		const struct core_segment *s = &core->segments.items[i];

		(void)core_read(core, s->address, bytes, sizeof(bytes));
		(void)core_read(core, s->address + s->size - 1, bytes, 1);
		if (core_read(core, s->address + s->size - 1, bytes, s->size > 1 ? 64 : 2) &&
		    i + 1 == core->segments.n)
			abort();
	}
	core = core_close(core);
	free(copy);
	return 0;
}
