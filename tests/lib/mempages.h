/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory pages
 *
 * Writes mem/pages of a snapshot.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ptd/snapshot.h"
#include "tests/lib/tempdir.h"

/* Add a piece. */
static inline void mempages_add(const char *dir, uint32_t pid, uint64_t address, const void *bytes,
				size_t size)
{
	const struct ptd_pages_piece piece = { .pid = pid, .address = address, .size = size };
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/" PTD_SNAPSHOT_MEM_PAGES, dir);
	f = fopen(path, "ae");
	if (!f || fwrite(&piece, sizeof(piece), 1, f) != 1 || fwrite(bytes, 1, size, f) != size ||
	    fclose(f) != 0)
		abort();
}

/* Begin anew with one piece. */
static inline void mempages_put(const char *dir, uint32_t pid, uint64_t address, const void *bytes,
				size_t size)
{
	static const struct ptd_pages_header header = { .magic = PTD_PAGES_MAGIC,
							.version = PTD_PAGES_VERSION };

	tempdir_put(dir, PTD_SNAPSHOT_MEM_PAGES, &header, sizeof(header));
	mempages_add(dir, pid, address, bytes, size);
}
