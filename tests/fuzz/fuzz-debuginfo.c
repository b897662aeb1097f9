/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The DWARF of a foreign ELF file, which libdw reads. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/symbol/debuginfo.h"
#include "decoder/util/filebytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find(struct debuginfo *debuginfo, uint64_t address)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	const int n = debuginfo_find(debuginfo, address, positions);
	size_t length = 0;

	for (int i = 0; i < n; i++) {
		length += positions[i].file ? strlen(positions[i].file) : 0;
		length += positions[i].function ? strlen(positions[i].function) : 0;
	}
	if (n < 0 || n > PTD_POSITIONS_MAX || length > SIZE_MAX / 2)
		abort();
}

static void find_inlined(struct debuginfo *debuginfo, uint64_t address)
{
	const struct ptd_inlined *inlined;
	size_t length = 0;
	uint64_t end;

	if (debuginfo_inlined(debuginfo, address, &inlined, &end) < 0 || end <= address)
		abort();
	for (; inlined; inlined = inlined->outer) {
		length += strlen(inlined->name) + strlen(inlined->linkage_name);
		if (inlined->depth != (inlined->outer ? inlined->outer->depth : 0) + 1)
			abort();
	}
	if (length > SIZE_MAX / 2)
		abort();
}

static void walk_lines(struct debuginfo *debuginfo)
{
	struct ptd_line_table table;
	size_t length = 0;

	if (debuginfo_lines(debuginfo, &table) < 0)
		abort();
	for (size_t i = 0; i < table.n_rows; i++) {
		const struct ptd_line_row *row = &table.rows[i];

		length += strlen(row->file);
		if (row->address >= row->end || row->line == 0 ||
		    (row->function != UINT32_MAX && row->function >= table.n_functions))
			abort();
	}
	for (size_t i = 0; i < table.n_functions; i++) {
		const struct ptd_line_function *function = &table.functions[i];

		length += strlen(function->name) + strlen(function->linkage_name);
		length += function->file ? strlen(function->file) : 0;
	}
	if (length > SIZE_MAX / 2)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(debuginfo_freep) struct debuginfo *debuginfo = NULL;
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	/* A copy of just this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size);

	if (copy && size > 0) {
		memcpy(copy, data, size);
		if (filebytes_new_in_memory(copy, size, &file) < 0 ||
		    debuginfo_new(file, NULL, &debuginfo) < 0)
			abort();
		for (uint64_t at = 0; debuginfo && at < 0x2000; at += 5) {
			find(debuginfo, at);
			find_inlined(debuginfo, at);
		}
		if (debuginfo)
			walk_lines(debuginfo);
		debuginfo = debuginfo_free(debuginfo);
		file = filebytes_unref(file);
	}
	free(copy);
	return 0;
}
