/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The call frame information of a foreign ELF file, unwinding by it, and its mini debuginfo. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/minidebug.h"
#include "decoder/symbol/unwind.h"
#include "decoder/util/filebytes.h"

#define STEPS_MAX 10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory in which every word has its own address. */
static bool read_memory(void *userdata, uint64_t address, void *ret_bytes, size_t size)
{
	(void)userdata;
	if (size != sizeof(address))
		abort();
	memcpy(ret_bytes, &address, size);
	return address % 3 > 0;
}

/* Unwind at an address of a function that is known to be there. */
static void unwind(const struct ehframe *ehframe, uint64_t address)
{
	const struct unwind_memory memory = { .read = read_memory };
	struct unwind_frame frame = { .known = (1u << _UNWIND_REGS) - 1 };
	struct ehframe_entry entry;

	if (!ehframe_find_entry(ehframe, address, &entry))
		return;
	if (entry.start > address || entry.end <= address)
		abort();
	(void)unwind_begins_inside(&entry);
	for (int i = 0; i < 4; i++)
		if (unwind_frame(&entry, address, &frame, &memory, &frame) != 0)
			return;
	if (!(frame.known >> UNWIND_RIP & 1))
		abort();
}

static void walk(const struct ehframe *ehframe)
{
	uint64_t start, end;

	for (uint64_t i = 0, at = 0; i < STEPS_MAX && at != UINT64_MAX; i++, at = end) {
		(void)ehframe_find(ehframe, at, &start, &end);
		if (start > at || end <= at)
			abort();
		unwind(ehframe, at);
		unwind(ehframe, end - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(minidebug_deinit) struct minidebug minidebug = {};
	_cleanup_(ehframe_freep) struct ehframe *ehframe = NULL;
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	/* A copy of just this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size);

	if (copy && size > 0) {
		memcpy(copy, data, size);
		if (filebytes_new_in_memory(copy, size, &file) < 0 ||
		    ehframe_new(file, &ehframe) < 0 || minidebug_read(file, &minidebug) < 0)
			abort();
		walk(ehframe);
		ehframe = ehframe_free(ehframe);
		file = filebytes_unref(file);
	}
	free(copy);
	return 0;
}
